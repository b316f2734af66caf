"""An AMQP client that has nothing but a binding's folder (servicebinding.io).

round-trip BINDING QUEUE TEXT   declares QUEUE, publishes TEXT to it, reads it back, prints it
fill BINDING QUEUE COUNT        declares QUEUE; it then has COUNT messages
login BINDING                   prints "open", or "refused: WHY" and exits 1
hold BINDING                    prints "open" and keeps the connection; for each line on standard input
                                publishes it, reads it back and prints it; at its end closes; if the broker
                                closes first, prints "cut: WHY" and exits 1

`round-trip` connects by the entry `uri`, the others by `host`, `port`, `username`, `password` and
`virtual-host`, so that both ways of reading a binding are tried. No wait is longer than 30 seconds.
"""

import pathlib
import select
import sys

import pika

SECONDS = 30


def entries(binding):
    """Each file of the folder, by name."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in pathlib.Path(binding).iterdir()
        if path.is_file()
    }


def limited(parameters):
    """The parameters, with a limit to every wait."""
    parameters.socket_timeout = SECONDS
    parameters.stack_timeout = SECONDS
    parameters.blocked_connection_timeout = SECONDS
    parameters.connection_attempts = 1
    return parameters


def by_uri(binding):
    """As a client that takes one URI connects."""
    return pika.BlockingConnection(limited(pika.URLParameters(entries(binding)["uri"])))


def by_entries(binding):
    """As a client that takes the parts connects."""
    entry = entries(binding)
    assert entry["type"] == "rabbitmq", entry["type"]
    credentials = pika.PlainCredentials(entry["username"], entry["password"])
    return pika.BlockingConnection(
        limited(
            pika.ConnectionParameters(
                entry["host"], int(entry["port"]), entry["virtual-host"], credentials
            )
        )
    )


def round_trip(channel, queue, text):
    """Publishes to a queue and reads back."""
    channel.queue_declare(queue, auto_delete=True)
    channel.basic_publish("", queue, text.encode())
    for method, _, body in channel.consume(queue, inactivity_timeout=SECONDS):
        if method is None:
            raise SystemExit(f"nothing came back from {queue} in {SECONDS} s")
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        return body.decode()
    raise SystemExit(f"{queue} ended")


def fill(channel, queue, count):
    """Leaves so many messages in a queue."""
    channel.queue_declare(queue)
    channel.queue_purge(queue)
    for _ in range(count):
        channel.basic_publish("", queue, b"message")


def say(text):
    """Prints at once."""
    print(text, flush=True)


def why(error):
    """What went wrong, in one line."""
    return " ".join(f"{type(error).__name__} {error}".split())


def hold(binding):
    """Keeps a connection."""
    connection = by_entries(binding)
    say("open")
    try:
        channel = connection.channel()
        while True:
            connection.process_data_events(time_limit=0.05)
            if not connection.is_open:
                raise pika.exceptions.ConnectionClosed(0, "closed")
            ready, _, _ = select.select([sys.stdin], [], [], 0)
            if ready:
                line = sys.stdin.readline()
                if not line:
                    connection.close()
                    return
                say(round_trip(channel, f"held-{id(connection)}", line.rstrip("\n")))
    except pika.exceptions.AMQPError as error:
        say(f"cut: {why(error)}")
        raise SystemExit(1) from None


def main(command, binding, *rest):
    """One command."""
    if command == "hold":
        hold(binding)
        return
    try:
        connection = by_uri(binding) if command == "round-trip" else by_entries(binding)
    except pika.exceptions.AMQPError as error:
        say(f"refused: {why(error)}")
        raise SystemExit(1) from None
    if command == "round-trip":
        say(round_trip(connection.channel(), *rest))
    elif command == "fill":
        queue, count = rest
        fill(connection.channel(), queue, int(count))
    elif command == "login":
        say("open")
    else:
        raise SystemExit(f"no such command: {command}")
    connection.close()


main(*sys.argv[1:])
