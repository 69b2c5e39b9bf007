use super::*;

fn advance(ack: u32, tsecr: Option<u32>) -> Advance {
    Advance {
        una: Seq(0),
        ack: Seq(ack),
        tsecr,
        now_ns: 300,
        plain_bytes: 0,
        ambiguous_bytes: 100,
        had_duplicates: false,
        has_sack: true,
    }
}

fn after(cause: RetransmissionCause, tsval: Option<u32>) -> Episode {
    let mut episode = Episode::default();
    let copy = Resent {
        seq: Seq(0),
        end: Seq(100),
        nxt: Seq(500),
        time_ns: 200,
        frame: 9,
        rto_ns: 0,
        tsval,
        is_distinct: true,
        events: 0,
        acked_bytes: 0,
        is_refused: false,
    };
    episode.resent(cause, &copy);
    episode
}

#[test]
fn recovery_ends_where_it_began() {
    let mut episode = after(RetransmissionCause::Fast, None);
    assert!(episode.acked(&advance(100, None)).is_partial);
    assert_eq!(episode.phase, Phase::Fast);
    assert!(!episode.acked(&advance(500, None)).is_partial);
    assert!(episode.is_quiet());
    assert_eq!((episode.recoveries, episode.recovery_ns), (1, 100));
}

#[test]
fn timestamps_identify_the_copy_that_arrived() {
    let shown = after(RetransmissionCause::Rto, Some(50)).acked(&advance(100, Some(50)));
    assert_eq!((shown.echoed_ns, shown.is_original), (Some(200), false));
    let mut episode = after(RetransmissionCause::Rto, Some(50));
    let shown = episode.acked(&advance(100, Some(49)));
    assert_eq!((shown.echoed_ns, shown.is_original), (None, true));
    assert_eq!(episode.by_timestamps, 1);
    episode.note_dsack(Seq(0), Seq(100), false, 300);
    assert_eq!((episode.dsacks, episode.by_dsack), (1, 0), "proved already");
}

#[test]
fn frto_needs_data_that_was_sent_once() {
    let jump = |plain_bytes, ambiguous_bytes, has_sack| {
        let mut episode = after(RetransmissionCause::Rto, None);
        episode.acked(&Advance {
            plain_bytes,
            ambiguous_bytes,
            has_sack,
            ..advance(300, None)
        });
        (episode.by_frto, episode.phase)
    };
    assert_eq!(jump(200, 100, true), (1, Phase::Open));
    assert_eq!(
        jump(200, 100, false),
        (0, Phase::Loss),
        "the receiver may have held it"
    );
    assert_eq!(jump(0, 100, true), (0, Phase::Loss));
    let mut episode = after(RetransmissionCause::Rto, None);
    for (plain_bytes, ambiguous_bytes) in [(0, 100), (200, 0)] {
        episode.acked(&Advance {
            plain_bytes,
            ambiguous_bytes,
            has_sack: false,
            ..advance(300, None)
        });
    }
    assert_eq!(
        (episode.by_frto, episode.phase),
        (1, Phase::Open),
        "the second ACK decides"
    );
}

#[test]
fn a_dsack_proves_the_first_copy_needless() {
    let mut episode = after(RetransmissionCause::Fast, None);
    episode.note_dsack(Seq(0), Seq(100), false, 300);
    episode.note_dsack(Seq(0), Seq(100), false, 300);
    assert_eq!((episode.dsacks, episode.by_dsack), (2, 1));
}
