//! An IP address -> whether a crawler may connect to it.
//!
//! A hostile page may link to `http://169.254.169.254/` or to a host that resolves to the archive's own network. The
//! driver checks every resolved address and connects only to the checked address, so a second DNS response
//! cannot replace it. The ranges are those of the IANA special-purpose registries (RFC 6890 and its updates).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that contains an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// On the public internet: by default the only kind that may be fetched from.
    Public,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, carrier-grade NAT, unique local.
    Private,
    /// Link-local, including cloud metadata services.
    LinkLocal,
    /// Not assigned to hosts: unspecified, multicast, broadcast, documentation, reserved.
    Reserved,
}

impl AddressKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            AddressKind::Public => "public",
            AddressKind::Loopback => "loopback",
            AddressKind::Private => "private",
            AddressKind::LinkLocal => "link-local",
            AddressKind::Reserved => "reserved",
        }
    }
}

/// Classifies an address. An IPv6 address that embeds an IPv4 address (mapped, compatible, 6to4, NAT64, Teredo) is
/// classified by the embedded address.
pub fn classify(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        [127, ..] => AddressKind::Loopback,
        [0, ..] => AddressKind::Reserved,
        [10, ..] | [192, 168, ..] => AddressKind::Private,
        [172, b, ..] if (16..32).contains(&b) => AddressKind::Private,
        [100, b, ..] if (64..128).contains(&b) => AddressKind::Private,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Reserved,
        [192, 88, 99, _] => AddressKind::Reserved,
        [198, b, ..] if b & 0xfe == 18 => AddressKind::Reserved,
        [a, ..] if a >= 224 => AddressKind::Reserved,
        // The metadata service of one large cloud has a public address.
        [168, 63, 129, 16] => AddressKind::LinkLocal,
        _ => AddressKind::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressKind {
    if address.is_loopback() {
        return AddressKind::Loopback;
    }
    if let Some(v4) = embedded_v4(address) {
        return classify_v4(v4);
    }
    let segments = address.segments();
    match segments[0] {
        s if s & 0xfe00 == 0xfc00 => AddressKind::Private,
        s if s & 0xffc0 == 0xfe80 => AddressKind::LinkLocal,
        s if s & 0xffc0 == 0xfec0 => AddressKind::Private,
        0x2001 if segments[1] == 0x0db8 || segments[1] < 0x0200 => AddressKind::Reserved,
        0x3fff if segments[1] < 0x1000 => AddressKind::Reserved,
        s if s & 0xe000 == 0x2000 => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(v4(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if address != Ipv6Addr::UNSPECIFIED => Some(v4(high, low)),
        [0x64, 0xff9b, _, _, _, _, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: AddressKind) {
        assert_eq!(classify(text.parse().unwrap()), expected, "{text}");
    }

    #[test]
    fn every_special_range_is_known() {
        for text in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2a00:1450:4001::1"] {
            check(text, AddressKind::Public);
        }
        for text in ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::127.0.0.1"] {
            check(text, AddressKind::Loopback);
        }
        for text in ["10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1"] {
            check(text, AddressKind::Private);
        }
        for text in ["64:ff9b::10.0.0.1", "2002:0a00:0001::", "fec0::1", "::ffff:0:10.0.0.1"] {
            check(text, AddressKind::Private);
        }
        for text in ["169.254.169.254", "fe80::1", "168.63.129.16", "::ffff:169.254.169.254"] {
            check(text, AddressKind::LinkLocal);
        }
        for text in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1", "::", "ff02::1"] {
            check(text, AddressKind::Reserved);
        }
        for text in ["2001:db8::1", "240.0.0.1", "203.0.113.9", "100::1"] {
            check(text, AddressKind::Reserved);
        }
    }

    #[test]
    fn teredo_counts_as_its_client() {
        check("2001:0:4136:e378:8000:63bf:80ff:fffe", AddressKind::Loopback);
    }
}
