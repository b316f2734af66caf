//! Which addresses no peer has. Threat: a member that advertises the address of a service of this machine, or of its
//! cloud's metadata, has the site send requests there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata and control addresses of clouds, besides the link-local ones.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Whether an address is loopback, link-local, unspecified, cloud metadata, or no one machine's.
#[must_use]
pub fn is_special(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, ..] = address.octets();
            first == 0
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || METADATA_V4.contains(&address)
        }
        IpAddr::V6(address) => {
            let embedded = match address.segments() {
                // NAT64 (RFC 6052): what it stands for counts.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
                }
                _ => None,
            };
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || address.is_multicast()
                || METADATA_V6.contains(&address)
                || embedded.is_some_and(|v4| is_special(v4.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_not_at_an_address_of_the_machine_itself_or_of_its_cloud() {
        for special in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "169.254.169.254",
            "169.254.0.1",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "64:ff9b::a9fe:a9fe",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:169.254.169.254",
        ] {
            assert!(is_special(special.parse().unwrap()), "{special}");
        }
        for plain in [
            "10.0.0.1",
            "192.168.1.1",
            "203.0.113.7",
            "fd00::1",
            "2001:db8::1",
            "64:ff9b::a00:1",
        ] {
            assert!(!is_special(plain.parse().unwrap()), "{plain}");
        }
    }
}
