"""Logs in to an AMQP 0-9-1 broker with what a binding's folder says (servicebinding.io), and nothing else.

    python3 login.py BINDING

Exits 0 once the broker has opened the virtual host, 1 with one line otherwise. No wait is longer than 10 seconds.
"""

import pathlib
import socket
import struct
import sys

SECONDS = 10
FRAME_END = 0xCE
START, START_OK, TUNE, TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
OPEN, OPEN_OK, CLOSE = (10, 40), (10, 41), (10, 50)


class Refused(Exception):
    """The broker does not let us in; the text says why."""


def short(text):
    """A string of at most 255 bytes, as AMQP writes it."""
    data = text.encode()
    return struct.pack(">B", len(data)) + data


def long(data):
    """Bytes of any length, as AMQP writes them."""
    return struct.pack(">I", len(data)) + data


def method(number, arguments=b""):
    """A frame of channel 0 with one method."""
    payload = struct.pack(">HH", *number) + arguments
    return struct.pack(">BHI", 1, 0, len(payload)) + payload + bytes([FRAME_END])


class Connection:
    """A connection up to the opening of its virtual host."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), SECONDS)
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")

    def read(self, size):
        """Exactly so many bytes."""
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise Refused("the broker closed the connection")
            data += more
        return data

    def expect(self, wanted):
        """The arguments of the method that has to come next."""
        kind, _, size = struct.unpack(">BHI", self.read(7))
        payload, end = self.read(size), self.read(1)[0]
        if end != FRAME_END or kind != 1:
            raise Refused("this is no AMQP broker")
        number, arguments = struct.unpack(">HH", payload[:4]), payload[4:]
        if number == CLOSE:
            code, length = struct.unpack(">HB", arguments[:3])
            raise Refused(f"{code} {arguments[3:3 + length].decode(errors='replace')}")
        if number != wanted:
            raise Refused(f"method {number} came where {wanted} was due")
        return arguments

    def log_in(self, user, password, virtual_host):
        """Opens the virtual host."""
        self.expect(START)
        # So that a refusal is told, and not only a closed connection.
        capability = short("authentication_failure_close") + b"t\x01"
        properties = short("capabilities") + b"F" + long(capability)
        response = b"\0" + user.encode() + b"\0" + password.encode()
        self.socket.sendall(
            method(START_OK, long(properties) + short("PLAIN") + long(response) + short("en_US"))
        )
        channels, frame, _ = struct.unpack(">HIH", self.expect(TUNE)[:8])
        self.socket.sendall(method(TUNE_OK, struct.pack(">HIH", channels, frame, 0)))
        self.socket.sendall(method(OPEN, short(virtual_host) + short("") + b"\0"))
        self.expect(OPEN_OK)
        self.socket.sendall(method(CLOSE, struct.pack(">H", 200) + short("bye") + b"\0\0\0\0"))


def main():
    """Logs in once."""
    binding = pathlib.Path(sys.argv[1])
    entry = {name: (binding / name).read_text() for name in ("host", "port", "username", "password", "virtual-host")}
    user, virtual_host = entry["username"], entry["virtual-host"]
    where = f"{entry['host']}:{entry['port']}"
    try:
        Connection(entry["host"], int(entry["port"])).log_in(user, entry["password"], virtual_host)
    except (OSError, Refused) as why:
        sys.exit(f"{where} refused {user}: {why}")
    print(f"logged in to {where} as {user}, virtual host {virtual_host}")


main()
