//! A pool of threads that compiles and checks documents, separate from the threads that serve. The number of documents
//! that are compiled and that wait is limited, and each has a deadline. A compilation ends by itself: its work is bounded.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::problem::ProblemDetails;

/// The maximum number of documents that wait; one more is refused.
const MAX_WAITING_DOCUMENTS: usize = 64;
/// The deadline of a document, including its wait.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that compile and check documents.
#[derive(Debug)]
pub struct CompilePool {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    patience: Duration,
}

impl Default for CompilePool {
    fn default() -> Self {
        // One core is left for the threads that serve.
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self::new(cores.saturating_sub(1).max(1), MAX_WAITING_DOCUMENTS, DOCUMENT_TIMEOUT)
    }
}

impl CompilePool {
    /// A pool for `running` documents at once, while `waiting` others wait.
    fn new(running: usize, waiting: usize, patience: Duration) -> Self {
        let waiting = Semaphore::new(running.saturating_add(waiting));
        Self { running: Arc::new(Semaphore::new(running)), waiting, patience }
    }

    /// Does the work on one of the threads.
    ///
    /// # Errors
    /// 503 when too many documents wait, or when the work is not done in time.
    pub async fn run_in_time<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ProblemDetails> {
        let Ok(_waiting) = self.waiting.try_acquire() else { return Err(busy()) };
        match timeout(self.patience, self.run(work)).await {
            Ok(done) => done,
            Err(_) => Err(busy()),
        }
    }

    /// The same without a deadline, for a document that was checked before.
    ///
    /// # Errors
    /// 500 when the work panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ProblemDetails> {
        let turn = Arc::clone(&self.running).acquire_owned().await.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            // The slot is held until the work ends, even if nobody waits for the result any more.
            drop(turn);
            done
        });
        done.await.map_err(|_| {
            let detail = "the document could not be checked: an error of this server";
            ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_judged", detail)
        })
    }
}

fn busy() -> ProblemDetails {
    let detail = "too many documents are being checked: retry in a moment";
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "judging_busy", detail)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::CompilePool;

    #[tokio::test]
    async fn one_that_is_never_done_keeps_others_out_only_until_their_deadline() {
        let pool = CompilePool::new(1, 8, Duration::ZERO);
        let (release, held) = mpsc::channel::<()>();
        let (first, second) = tokio::join!(pool.run_in_time(move || held.recv().is_ok()), pool.run_in_time(|| true));
        assert_eq!(first.unwrap_err().code, "judging_busy");
        assert_eq!(second.unwrap_err().code, "judging_busy");
        // The thread continues until its work is done; only then is its slot free.
        drop(release);
        assert!(pool.run(|| true).await.unwrap());
    }

    #[tokio::test]
    async fn more_than_may_wait_are_refused_at_once() {
        let pool = CompilePool::new(1, 0, Duration::MAX);
        let (release, held) = mpsc::channel::<()>();
        let first = pool.run_in_time(move || held.recv().is_err());
        let second = async {
            let refused = pool.run_in_time(|| true).await;
            drop(release);
            refused
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.unwrap());
        assert_eq!(second.unwrap_err().status, 503);
    }

    #[tokio::test]
    async fn work_that_breaks_is_a_fault_of_the_server_and_gives_its_turn_back() {
        let pool = CompilePool::new(1, 0, Duration::MAX);
        let broken = pool.run_in_time(|| [0; 1].get(1).copied().expect("a panic")).await;
        assert_eq!(broken.unwrap_err().status, 500);
        assert!(pool.run_in_time(|| true).await.unwrap());
    }
}
