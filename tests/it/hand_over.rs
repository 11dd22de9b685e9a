//! A lock that changes hands between two clients.

use quorate::config::{MAX_LABEL, MAX_TTL};
use quorate::{Error, Guard, Handover, Loss, Redlock};
use quorate_testkit::{EmbeddedMasters, Masters, RedisServer, eventually};

use crate::{SOON, TTL, all_new, answering, builder, ms, on_all, patient, until};

/// The hand-over as the other process gets it.
async fn handed_over(guard: &Guard) -> Handover {
    guard.hand_over().await.unwrap().to_string().parse().unwrap()
}

#[tokio::test]
async fn a_lock_changes_hands_and_is_never_free_in_between() {
    let masters = Masters::start(5);
    let (here, there, other) = (patient(&masters), patient(&masters), patient(&masters));
    let guard = here.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    let handover = handed_over(&guard).await;
    // Where it comes later than the adoption, which is another client's, it leaves a key to its
    // TTL.
    let mine = guard.owner().to_string();
    let is_mine = |server: &RedisServer| crate::holds(server, "quorate:{l}", &mine).is_some();
    until("the hand-over on every master", async || !masters.iter().any(is_mine)).await;
    assert!(!guard.is_valid() && guard.lost_token().is_cancelled());
    assert!(matches!(guard.lost().await, Error::Lost { cause: Loss::HandedOver, .. }));
    assert!(matches!(guard.extend(TTL).await, Err(Error::Lost { cause: Loss::HandedOver, .. })));
    assert!(matches!(other.lock("l").try_acquire().await, Err(Error::Held { .. })));

    let adopted = there.lock("l").adopt(&handover).await.unwrap();
    assert!(adopted.remaining() > TTL / 2);
    assert_ne!(adopted.owner(), guard.owner());
    assert!(matches!(guard.release().await, Err(Error::Lost { cause: Loss::HandedOver, .. })));
    assert!(matches!(other.lock("l").try_acquire().await, Err(Error::Held { .. })), "the first was spent");
    adopted.extend(TTL * 2).await.unwrap();
    adopted.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn an_adopted_lock_has_the_lock_delay_of_its_options() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    let handover = handed_over(&guard).await;
    let too_long = redlock.lock("l").lock_delay(MAX_TTL).adopt(&handover).await.unwrap_err();
    assert!(too_long.to_string().contains("86400s"), "{too_long}");
    let label = redlock.lock("l").label("x".repeat(MAX_LABEL + 1)).adopt(&handover).await;
    assert!(matches!(label, Err(Error::Invalid(_))), "{label:?}");
    let adopted = redlock.lock("l").lock_delay(TTL * 2).adopt(&handover).await.unwrap();
    let kept = masters.iter().map(|server| crate::kept_for(server).unwrap());
    assert!(kept.clone().all(|kept| kept > TTL * 2), "{:?}", kept.collect::<Vec<_>>());
    adopted.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn whoever_adopts_first_is_the_only_one() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    for _ in 0..10 {
        let guard = here.lock("l").acquire().await.unwrap();
        let handover = handed_over(&guard).await;
        let lock = |redlock: &Redlock| redlock.lock("l");
        let (one, two) = (lock(&here), lock(&there));
        let both = tokio::join!(one.adopt(&handover), two.adopt(&handover));
        let (adopted, refused) = match both {
            (Ok(adopted), Err(error)) | (Err(error), Ok(adopted)) => (adopted, error),
            (Err(_), Err(_)) => continue, // they split the vote, and gave it back
            (Ok(_), Ok(_)) => panic!("two have it"),
        };
        assert!(matches!(refused, Error::Held { .. } | Error::NoQuorum { .. }), "{refused}");
        let again = there.lock("l").adopt(&handover).await.unwrap_err();
        assert!(again.holder().is_some(), "{again}");
        adopted.release().await.unwrap();
        let gone = there.lock("l").adopt(&handover).await.unwrap_err();
        assert!(matches!(gone, Error::Lost { cause: Loss::NotOurs, .. } | Error::NoQuorum { .. }), "{gone}");
        eventually(SOON, || masters.empty()).await;
    }
}

/// What only the bearer of a hand-over has: the fourth part of its text.
fn secret_of(handover: &str) -> &str {
    handover.split('.').nth(3).unwrap()
}

#[tokio::test]
async fn a_hand_over_of_another_lock_or_of_other_masters_is_refused_and_nothing_is_sent() {
    let (masters, others) = (Masters::start(3), Masters::start(3));
    let here = all_new(&masters).build().unwrap();
    let guard = here.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    let handover = handed_over(&guard).await;
    let invalid = |error: Error| match error {
        Error::Invalid(why) if why.to_string().starts_with("hand-over of ") => why.to_string(),
        other => panic!("{other}"),
    };
    let text = invalid(all_new(&others).build().unwrap().lock("l").adopt(&handover).await.unwrap_err());
    assert!(text.contains("other masters"), "{text}");
    let prefixed = all_new(&masters).prefix("x:").build().unwrap();
    let text = invalid(prefixed.lock("l").adopt(&handover).await.unwrap_err());
    assert!(text.contains("other key prefix") || text.contains("another key prefix"), "{text}");
    let text = invalid(here.lock("m").adopt(&handover).await.unwrap_err());
    assert!(text.contains("\"l\"") && text.contains("\"m\""), "{text}");
    assert!(others.empty().is_ok());

    // Whoever is refused is shown the owner meanwhile, and everybody the owner of a guard. Neither
    // makes a hand-over.
    let live = here.lock("live").acquire().await.unwrap();
    let shown = here.lock("l").try_acquire().await.unwrap_err();
    assert!(!format!("{shown:#} {shown:?}").contains(secret_of(&handover.to_string())), "{shown:#}");
    let (meanwhile, its_owner) = (shown.holder().unwrap().owner.to_string(), live.owner().to_string());
    for (owner, name) in [(meanwhile, "l"), (its_owner, "live")] {
        let text = handover.to_string();
        let forged = text.replace(secret_of(&text), &owner[..36]);
        let forged = forged.strip_suffix('l').unwrap().to_owned() + name;
        let forged = forged.parse::<Handover>().unwrap();
        here.lock(name).adopt(&forged).await.unwrap_err();
    }
    assert!(live.is_valid());

    // The masters in another order are the same masters.
    let reversed = crate::begin().masters(masters.urls().into_iter().rev()).ttl(TTL).build().unwrap();
    answering(&reversed, 3).await;
    let _ = reversed.lock("l").adopt(&handover).await.unwrap();
}

#[tokio::test]
async fn a_hand_over_that_finds_no_quorum_leaves_the_guard_as_it_was() {
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(ms(500)).build().unwrap();
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    masters[0].freeze();
    masters[1].freeze();
    let error = guard.hand_over().await.unwrap_err();
    assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
    assert!(guard.is_valid());
    masters[0].thaw();
    masters[1].thaw();
    answering(&redlock, 3).await;
    guard.extend(TTL * 2).await.unwrap();
    let owner = guard.owner().to_string();
    let is_owner = async || {
        let seen = redlock.lock("l").inspect().await.unwrap();
        seen.holder().is_some_and(|holder| *holder.owner == *owner && holder.masters == 3)
    };
    crate::until("every master to know the owner again", is_owner).await;
    guard.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_lock_that_was_entered_twice_is_not_handed_over() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let lock = redlock.lock("l").owned_by(&redlock.owner());
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    let error = outer.hand_over().await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(why) if why.to_string().contains("is entered 2 times")),
        "{error}"
    );
    inner.release().await.unwrap();
    let handover = handed_over(&outer).await;
    drop(outer);
    // The owner that handed it over has it no more, under whatever name.
    assert!(matches!(lock.try_acquire().await, Err(Error::Held { .. })));
    lock.adopt(&handover).await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn an_adoption_that_is_cancelled_leaves_the_lock_to_the_hand_over() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard = redlock.lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    let mut handover = handed_over(&guard).await;
    let lock = redlock.lock("l");
    for polls in 0..40 {
        let adopted = {
            let mut adopting = Box::pin(lock.adopt(&handover));
            let mut done = None;
            for _ in 0..polls {
                if let std::task::Poll::Ready(adopted) = futures::poll!(&mut adopting) {
                    done = Some(adopted);
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_micros(50)).await;
            }
            done
        };
        // An error is that of one who came while the one before was still giving it back.
        if let Some(Ok(adopted)) = adopted {
            handover = handed_over(&adopted).await;
        }
    }
    let adopted = {
        let mut adopted = None;
        crate::until("the lock to be adopted", async || {
            adopted = lock.adopt(&handover).await.ok();
            adopted.is_some()
        })
        .await;
        adopted.unwrap()
    };
    adopted.release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

#[tokio::test]
async fn a_hand_over_that_nobody_adopts_is_void_after_the_ttl() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    let guard =
        builder(&masters).timeout(ms(500)).build().unwrap().lock("l").ttl(ms(1_000)).acquire().await.unwrap();
    let handover = handed_over(&guard).await;
    eventually(SOON, || masters.empty()).await;
    let error = redlock.lock("l").adopt(&handover).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

/// What was not sent yet when the adoption was given up must not be sent after it was taken back.
#[tokio::test]
async fn an_adoption_that_is_cancelled_while_its_client_connects_leaves_the_lock_to_the_hand_over() {
    let masters = Masters::start(3);
    let here = patient(&masters);
    for round in 0..40 {
        let guard = here.lock("l").acquire().await.unwrap();
        on_all(&masters).await;
        let handover = handed_over(&guard).await;
        let there = patient(&masters);
        let adopted = {
            let lock = there.lock("l");
            let mut adopting = Box::pin(lock.adopt(&handover));
            match futures::poll!(&mut adopting) {
                // This thread stood still for so long that the other had done it all.
                std::task::Poll::Ready(adopted) => Some(adopted.unwrap()),
                std::task::Poll::Pending => {
                    std::thread::sleep(std::time::Duration::from_micros(20 * round));
                    None
                }
            }
        };
        assert!(there.shutdown(SOON).await.is_complete());
        let adopted = match adopted {
            Some(adopted) => adopted,
            None => here.lock("l").adopt(&handover).await.unwrap(),
        };
        adopted.release().await.unwrap();
        eventually(SOON, || masters.empty()).await;
    }
}

#[tokio::test]
async fn a_hand_over_of_another_kind_of_lock_is_refused_as_one_and_is_as_good_as_it_was() {
    let masters = Masters::start(3);
    let (here, there) = (patient(&masters), patient(&masters));
    let guard = here.read_lock("l").acquire().await.unwrap();
    on_all(&masters).await;
    let handover = handed_over(&guard).await;
    for other in [there.fair_lock("l"), there.lock("l"), there.mutex("l")] {
        let error = other.adopt(&handover).await.unwrap_err();
        assert!(error.to_string().contains("another kind of lock"), "{error}");
    }
    there.read_lock("l").adopt(&handover).await.unwrap().release().await.unwrap();
    eventually(SOON, || masters.empty()).await;
}

/// Until then it does not know what time the masters show.
#[tokio::test]
async fn a_client_that_has_reached_no_master_yet_adopts_as_soon_as_it_does() {
    let masters = EmbeddedMasters::new(3);
    let client = || Redlock::builder().masters(&masters).build().unwrap();
    let guard = client().lock("l").acquire().await.unwrap();
    let handover = handed_over(&guard).await;
    let there = client();
    masters.iter().for_each(|master| master.set_reachable(false));
    there.lock("x").try_acquire().await.unwrap_err();
    masters.iter().for_each(|master| master.set_reachable(true));
    assert!(there.lock("l").adopt(&handover).await.unwrap().is_valid());
}
