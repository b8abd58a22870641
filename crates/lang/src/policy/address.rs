//! Which addresses are public: the ranges of IANA's special-purpose registries, and the ways to
//! write one address inside another.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 without public hosts: the first address, and the number of significant bits.
const V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The address at which one large cloud serves its machines their metadata.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// A range of IPv6: the addresses whose first `bits` are those of `first`.
struct V6Range {
    first: Ipv6Addr,
    bits: u32,
}

impl V6Range {
    const fn new(first: Ipv6Addr, bits: u32) -> Self {
        Self { first, bits }
    }

    fn contains(&self, address: Ipv6Addr) -> bool {
        let host_bits = 128 - self.bits;
        address.to_bits() >> host_bits == self.first.to_bits() >> host_bits
    }
}

/// The only part of IPv6 that is allocated to public hosts.
const V6_PUBLIC: V6Range = V6Range::new(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The special ranges inside of it: protocol assignments (with Teredo), documentation, 6to4.
const V6_SPECIAL: &[V6Range] = &[
    V6Range::new(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    V6Range::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    V6Range::new(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    V6Range::new(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The prefix under which a network's own translator takes IPv4 addresses (RFC 6052).
const NAT64: V6Range = V6Range::new(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address belongs to a public host. An IPv4 address inside an IPv6 one (mapped, or behind NAT64) is
/// checked as itself; 6to4, Teredo and IPv4-compatible ones are not public.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4_is_public(address),
        IpAddr::V6(address) => v6_is_public(address),
    }
}

fn v4_is_public(address: Ipv4Addr) -> bool {
    !V4.iter().any(|(first, bits)| same_prefix(address.to_bits(), first.to_bits(), 32 - bits))
}

fn v6_is_public(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return v4_is_public(mapped);
    }
    if NAT64.contains(address) {
        let [.., a, b, c, d] = address.octets();
        return v4_is_public(Ipv4Addr::new(a, b, c, d));
    }
    V6_PUBLIC.contains(address) && !V6_SPECIAL.iter().any(|range| range.contains(address))
}

fn same_prefix(left: u32, right: u32, host_bits: u32) -> bool {
    left >> host_bits == right >> host_bits
}
