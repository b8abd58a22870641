//! What one token or one organisation uses. Pure: the time is a parameter.

use super::bounds::QuotaLimits;
use super::bucket::Bucket;

/// A minute in milliseconds.
const MINUTE_MS: u64 = 60_000;
/// An hour in milliseconds.
const HOUR_MS: u64 = 3_600_000;

/// Something that counts for as long as it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaItem {
    Connection,
    EventStream,
    /// A run that waits for a slot.
    Queued,
}

/// What one token or organisation uses.
#[derive(Debug)]
pub struct Account {
    bounds: QuotaLimits,
    connections: usize,
    event_streams: usize,
    queued: usize,
    /// The runs that wait in the store and are not among `queued`: another process, or an earlier one, has queued them.
    carried: usize,
    driven: u64,
    bytes: Option<Bucket>,
    time: Option<Bucket>,
}

impl Account {
    /// An account that uses nothing.
    pub fn new(bounds: QuotaLimits, now_ms: u64) -> Self {
        Self {
            bounds,
            connections: 0,
            event_streams: 0,
            queued: 0,
            carried: 0,
            driven: 0,
            bytes: bounds.bytes.map(|bytes| Bucket::new(bytes, MINUTE_MS, now_ms)),
            time: bounds.running_ms.map(|ms| Bucket::new(ms, HOUR_MS, now_ms)),
        }
    }

    /// Whether one more may be taken.
    pub fn has(&self, held: QuotaItem) -> bool {
        let (taken, most) = self.count(held);
        taken < most
    }

    /// Takes one.
    pub fn take(&mut self, held: QuotaItem) {
        let taken = self.taken(held);
        *taken = taken.saturating_add(1);
    }

    /// Gives one back.
    pub fn give_back(&mut self, held: QuotaItem) {
        let taken = self.taken(held);
        *taken = taken.saturating_sub(1);
    }

    /// How many are taken, and the limit.
    pub fn count(&self, held: QuotaItem) -> (usize, usize) {
        match held {
            QuotaItem::Connection => (self.connections, self.bounds.connections),
            QuotaItem::EventStream => (self.event_streams, self.bounds.event_streams),
            QuotaItem::Queued => (self.queued.saturating_add(self.carried), self.bounds.queued),
        }
    }

    /// How many runs wait in the store beside those that it has taken.
    pub fn carry(&mut self, runs: usize) {
        self.carried = runs;
    }

    fn taken(&mut self, held: QuotaItem) -> &mut usize {
        match held {
            QuotaItem::Connection => &mut self.connections,
            QuotaItem::EventStream => &mut self.event_streams,
            QuotaItem::Queued => &mut self.queued,
        }
    }

    /// Counts bytes.
    pub fn send(&mut self, bytes: u64, now_ms: u64) {
        if let Some(bucket) = &mut self.bytes {
            bucket.pass(now_ms, 0);
            bucket.spend(bytes);
        }
    }

    /// After how many milliseconds bytes are available again; 0 when they are now.
    pub fn bytes_in_ms(&mut self, now_ms: u64) -> u64 {
        self.bytes.as_mut().map_or(0, |bucket| {
            bucket.pass(now_ms, 0);
            bucket.wait_ms()
        })
    }

    /// One more run is driven from now on.
    pub fn drive(&mut self, now_ms: u64) {
        self.time_in_ms(now_ms);
        self.driven = self.driven.saturating_add(1);
    }

    /// One run fewer is driven from now on.
    pub fn leave(&mut self, now_ms: u64) {
        self.time_in_ms(now_ms);
        self.driven = self.driven.saturating_sub(1);
    }

    /// After how many milliseconds running time is available again, if nothing is driven; 0 when it is now.
    pub fn time_in_ms(&mut self, now_ms: u64) -> u64 {
        let driven = self.driven;
        self.time.as_mut().map_or(0, |bucket| {
            bucket.pass(now_ms, driven);
            bucket.wait_ms()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds::QuotaLimits;
    use super::*;

    fn account() -> Account {
        let bounds =
            QuotaLimits { connections: 2, event_streams: 1, queued: 3, running_ms: Some(10_000), bytes: Some(1_000) };
        Account::new(bounds, 0)
    }

    #[test]
    fn what_is_held_is_counted_each_kind_for_itself() {
        let mut account = account();
        for (held, most) in [(QuotaItem::Connection, 2), (QuotaItem::EventStream, 1), (QuotaItem::Queued, 3)] {
            for _ in 0..most {
                assert!(account.has(held));
                account.take(held);
            }
            assert!(!account.has(held), "{held:?}");
            account.give_back(held);
            assert!(account.has(held), "{held:?}");
        }
    }

    #[test]
    fn runs_that_hang_spend_the_time_while_they_hang() {
        let mut account = account();
        account.drive(0);
        account.drive(0);
        assert_eq!(account.time_in_ms(4_999), 0);
        let wait = account.time_in_ms(5_100);
        assert!(wait > 0, "two runs of 5.1 seconds are more than 10 seconds");
        account.leave(5_100);
        account.leave(5_100);
        assert_eq!(account.time_in_ms(5_100 + wait), 0);
    }

    #[test]
    fn bytes_come_back_with_the_time() {
        let mut account = account();
        account.send(1_500, 0);
        let wait = account.bytes_in_ms(0);
        assert_eq!(wait, 30_001);
        assert_eq!(account.bytes_in_ms(wait), 0);
    }
}
