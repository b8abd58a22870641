//! The limits of each token and each organisation: those of the project file, and by default a share of what
//! there is.

use crate::language::serving::{Limits, Share};

/// The default number of queued runs of a token.
const DEFAULT_QUEUED_RUNS: usize = 500;
/// The default number of bytes of a token in a minute.
const DEFAULT_MINUTE_BYTES: u64 = 256 << 20;
/// Half of the seconds of an hour at one slot.
const HALF_HOUR_SECONDS: u64 = 1_800;

/// The capacity to share.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    /// Connections of clients that have shown a token.
    pub connections: usize,
    /// Slots for driven runs.
    pub places: usize,
    /// The organisations that have tokens; 0 without tokens.
    pub orgs: usize,
}

/// The limits of one token or organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimits {
    pub connections: usize,
    pub event_streams: usize,
    /// Runs that wait for a slot.
    pub queued: usize,
    /// Milliseconds of driven runs in an hour.
    pub running_ms: Option<u64>,
    /// Bytes in a minute.
    pub bytes: Option<u64>,
}

impl QuotaLimits {
    /// The limits of each token and of each organisation. Without tokens all callers are one, and only the
    /// limits of the project file apply.
    pub fn of(limits: &Limits, whole: Capacity) -> (Self, Self) {
        if whole.orgs == 0 {
            let all = Self {
                connections: whole.connections,
                event_streams: whole.connections,
                queued: usize::MAX,
                running_ms: None,
                bytes: None,
            };
            return (all.but(&limits.token), all.but(&limits.org));
        }
        let places = u64::try_from(whole.places).unwrap_or(u64::MAX);
        let half_the_time = HALF_HOUR_SECONDS.saturating_mul(1_000).saturating_mul(places);
        // A single organisation has no others to leave time for.
        let running_ms = (whole.orgs > 1).then_some(half_the_time);
        let token = Self {
            connections: (whole.connections / 4).max(1),
            event_streams: (whole.connections / 8).max(1),
            queued: DEFAULT_QUEUED_RUNS,
            running_ms,
            bytes: Some(DEFAULT_MINUTE_BYTES),
        };
        let org = Self {
            connections: (whole.connections / 2).max(1),
            event_streams: (whole.connections / 4).max(1),
            queued: DEFAULT_QUEUED_RUNS * 2,
            running_ms,
            bytes: Some(DEFAULT_MINUTE_BYTES * 2),
        };
        (token.but(&limits.token), org.but(&limits.org))
    }

    /// The same, with the limits of the project file.
    fn but(self, share: &Share) -> Self {
        let count = |written: Option<u32>, else_: usize| {
            written.map_or(else_, |written| usize::try_from(written).unwrap_or(usize::MAX))
        };
        let ms = |seconds: u32| u64::from(seconds).saturating_mul(1_000);
        Self {
            connections: count(share.connections, self.connections),
            event_streams: count(share.event_streams, self.event_streams),
            queued: count(share.queued, self.queued),
            running_ms: share.running_seconds_per_hour.map(ms).or(self.running_ms),
            bytes: share.bytes_per_minute.or(self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_takes_the_place_of_a_part_of_the_whole() {
        let whole = Capacity { connections: 800, places: 64, orgs: 2 };
        let (token, org) = QuotaLimits::of(&Limits::default(), whole);
        assert_eq!((token.connections, token.event_streams, token.queued), (200, 100, 500));
        assert_eq!((org.connections, org.event_streams, org.queued), (400, 200, 1_000));
        assert_eq!(org.running_ms, Some(64 * 1_800_000));
        let token = Share { connections: Some(7), running_seconds_per_hour: Some(9), ..Share::default() };
        let written = Limits { token, ..Limits::default() };
        let (token, other) = QuotaLimits::of(&written, whole);
        assert_eq!((token.connections, token.event_streams, token.running_ms), (7, 100, Some(9_000)));
        assert_eq!(other, org);
    }

    #[test]
    fn without_tokens_only_connections_bind_and_one_organisation_alone_has_all_the_time() {
        let (token, org) = QuotaLimits::of(&Limits::default(), Capacity { connections: 800, places: 64, orgs: 0 });
        assert_eq!(token, org);
        assert_eq!((token.connections, token.event_streams, token.queued), (800, 800, usize::MAX));
        assert_eq!((token.running_ms, token.bytes), (None, None));
        let (token, org) = QuotaLimits::of(&Limits::default(), Capacity { connections: 800, places: 64, orgs: 1 });
        assert_eq!((token.running_ms, org.running_ms), (None, None));
    }
}
