//! Cancelling an operation at every point where it can be cancelled.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Makes an operation and drops it after 0, 1, 2, … polls, until it completes, or up to `most`.
/// After each, `check` looks at what is left. Between two polls the runtime runs once, so that an
/// operation which tasks of the same runtime carry out is cancelled between their steps, too.
/// Returns how many polls it took to complete, if it did.
pub async fn cancel_at_every_poll<F: Future>(
    most: usize,
    mut make: impl FnMut() -> F,
    mut check: impl AsyncFnMut(usize, Option<F::Output>),
) -> Option<usize> {
    for polls in 0..=most {
        let output = poll_times(make(), polls).await;
        let completed = output.is_some();
        check(polls, output).await;
        if completed {
            return Some(polls);
        }
    }
    None
}

async fn poll_times<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_operation_of_three_steps_is_cancelled_four_times() {
        let mut seen = Vec::new();
        let steps = cancel_at_every_poll(
            10,
            || async {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                "done"
            },
            async |polls, output| seen.push((polls, output)),
        )
        .await;
        assert_eq!(steps, Some(4));
        assert_eq!(cancel_at_every_poll(10, std::future::pending::<()>, async |_, _| {}).await, None);
        assert_eq!(seen, [(0, None), (1, None), (2, None), (3, None), (4, Some("done"))]);
    }
}
