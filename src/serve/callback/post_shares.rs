//! How many posts of each organisation are under way at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

use super::MAX_POSTS_OF_ORG;

/// The shares that are in use, by organisation; the empty text is the runs of none.
#[derive(Default)]
pub(super) struct PostShares(Mutex<BTreeMap<String, Weak<Semaphore>>>);

impl PostShares {
    /// The share of an organisation.
    pub fn of(&self, org: Option<&str>) -> Arc<Semaphore> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(org.unwrap_or_default()).and_then(Weak::upgrade) {
            return share;
        }
        // Who has nothing to post any more is forgotten.
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(MAX_POSTS_OF_ORG));
        shares.insert(org.unwrap_or_default().to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_organisation_has_a_share_of_its_own_as_long_as_it_posts() {
        let shares = PostShares::default();
        let (acme, again, beta) = (shares.of(Some("acme")), shares.of(Some("acme")), shares.of(Some("beta")));
        let taken: Vec<_> = (0..MAX_POSTS_OF_ORG).map(|_| acme.try_acquire().unwrap()).collect();
        assert!(again.try_acquire().is_err(), "it is the same share");
        assert!(beta.try_acquire().is_ok() && shares.of(None).try_acquire().is_ok());
        drop(taken);
        drop((acme, again, beta));
        drop(shares.of(None));
        assert_eq!(shares.0.lock().unwrap().len(), 1, "the others are forgotten");
    }
}
