//! The judgement of a direction: its budget, and what rules and the other end's capture say of it, weighed.
//!
//! Findings say more exactly which limit the time that they claim is due to, and who can change it.

use crate::tables::budget_item::{ItemTrait, SenderState};
use crate::tables::limit::{Limit, LIMITS};
use crate::verdict::budget::{sum_of, Items};
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::crossing::{Crossing, Witness};
use crate::verdict::division::{by_limit, Division, Doubts, Times, MIN_COST_NS};
use crate::verdict::facts::Facts;
use crate::verdict::gain::{part_of, silent_by_limit, Carried, Life};
use crate::verdict::opinion::{Fix, Meaning, Opinion, Reason, Seen};
use crate::verdict::owner::{End, Owner};
use crate::verdict::traits::{is_growing, is_slow};

/// Of the duration: packets and kernel further apart than this do not agree.
const DISAGREEING_SHARE: f64 = 0.1;

/// What a finding says, but for its words.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    pub owner: Owner,
    pub side: Option<End>,
    pub confidence: Confidence,
    /// It warns, and does not merely explain.
    pub is_warning: bool,
    pub cost_ns: i64,
    /// It says what to do.
    pub has_remedy: bool,
}

/// Time of an item that a finding claims for a limit.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its place among the findings; claims of a finding follow each other.
    pub finding: usize,
    pub item: SenderState,
    pub limit: Limit,
    pub ns: i64,
}

/// A direction's budget, and what is known beside it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// As the kernel's count and the other end's capture correct it.
    pub items_ns: Items,
    /// By the packets alone.
    pub packets_ns: Items,
    /// How long the sender's kernel waited for the window, where it counted.
    pub kernel_window_ns: Option<i64>,
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    pub crossing: Option<Crossing>,
    /// The capture lost packets of any connection.
    pub is_capture_lossy: bool,
}

codes! {
    /// Whether there is something to fix.
    Standing:
    /// A problem, or nothing that could be said not to be one.
    Limited "limited",
    /// Too little time was lost to be a problem.
    Slight "slight",
    Fine "fine",
    /// Nothing in TCP: the application may have something to fix.
    FineInTcp "fine_in_tcp",
}

/// What limited a direction. Times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Judgement {
    pub division: Division,
    pub is_slow: bool,
    /// Whether there was no time to judge.
    pub is_empty: bool,
    pub cost_ns: i64,
    pub cost_low_ns: i64,
    pub cost_high_ns: i64,
    pub confidence: Confidence,
    pub owner: Owner,
    pub side: Option<End>,
    pub reason: Reason,
    pub meaning: Meaning,
    /// The capture seems to hold each packet twice; other subflows may have carried the data.
    pub is_doubled: bool,
    pub is_subflow: bool,
    /// What lifting the limit beside would have gained.
    pub also_ns: i64,
    /// What the fix is: of the limit beside, where there is one.
    pub fix: Fix,
    /// What both captures say of the first limit, and of the one that the fix is about.
    pub witness: Witness,
    pub fix_witness: Witness,
    /// The findings that tell the reason and the fix, by place.
    pub reason_finding: Option<usize>,
    pub fix_finding: Option<usize>,
    pub standing: Standing,
}

impl Judgement {
    /// Share of the connection's duration that the limit has.
    pub fn share(&self) -> f64 {
        share_of(self.division.first_ns, self.division.total_ns)
    }

    pub fn second_share(&self) -> f64 {
        share_of(self.division.second_ns, self.division.total_ns)
    }

    pub fn also_share(&self) -> f64 {
        share_of(self.also_ns, self.division.total_ns)
    }

    /// Of the time in which the sender had work.
    pub fn lost_share(&self) -> f64 {
        share_of(self.division.loss.lost_ns, self.division.loss.busy_ns)
    }

    /// Cost of the limit that the fix is about: the first, or the one beside it.
    pub fn named_ns(&self) -> i64 {
        match self.division.also {
            Some(_) => self.also_ns,
            None if self.division.first.row().is_mendable => self.cost_ns,
            None => self.division.loss.lost_ns,
        }
    }
}

fn share_of(ns: i64, total_ns: i64) -> f64 {
    if total_ns == 0 {
        0.0
    } else {
        ns as f64 / total_ns as f64
    }
}

/// What is said of a limit, and by whom.
struct Informed {
    opinion: Opinion,
    finding: Option<usize>,
    witness: Witness,
}

struct Judge<'a> {
    facts: &'a Facts,
    evidence: &'a Evidence,
    seen: Seen<'a>,
    division: Division,
    /// Of each limit's time, what each finding claims.
    claimed: Vec<(Limit, usize, i64)>,
}

/// The judgement of a direction.
pub fn judge(facts: &Facts, evidence: &Evidence) -> Judgement {
    let is_slow = is_slow(&facts.data, &evidence.items_ns);
    let (times_ns, mended_ns, claimed) = settle(evidence, is_slow);
    let doubts = Doubts {
        is_disturbed: facts.is_handshake_disturbed(),
        is_stalled: facts.is_stalled(),
        is_sampled: facts.connection.sampled,
    };
    let judge = Judge {
        facts,
        evidence,
        seen: Seen {
            facts,
            items_ns: &evidence.items_ns,
            has_kernel: evidence.kernel_window_ns.is_some(),
        },
        division: Division::of(&times_ns, &mended_ns, doubts),
        claimed,
    };
    judge.judgement(is_slow)
}

/// The time of each limit, what of limits at work as designed is too much, and what findings claim of each limit.
fn settle(evidence: &Evidence, is_slow: bool) -> (Times, Times, Vec<(Limit, usize, i64)>) {
    if evidence.claims.is_empty() && evidence.crossing.is_none() {
        return (
            by_limit(&evidence.items_ns, is_slow),
            [0; LIMITS],
            Vec::new(),
        );
    }
    let crossing = evidence.crossing.as_ref();
    let shown_limit =
        |item, limit| crossing.map_or(limit, |crossing| crossing.limit_of(item, limit));
    // Of time in another limit than one capture shows, somebody can mend all, where nothing was lost.
    let is_without_loss = crossing.is_some_and(Crossing::is_without_loss);
    let mut left_ns = evidence.items_ns;
    let (mut times_ns, mut mended_ns) = ([0; LIMITS], [0; LIMITS]);
    let mut claimed: Vec<(Limit, usize, i64)> = Vec::new();
    for claim in &evidence.claims {
        // Of what the other end's capture takes from an item nothing can be claimed.
        let ns = claim.ns.min(left_ns[claim.item as usize]);
        left_ns[claim.item as usize] -= ns;
        let shown = shown_limit(claim.item, claim.limit);
        times_ns[shown as usize] += ns;
        if shown != claim.limit {
            mended_ns[shown as usize] += if is_without_loss { ns } else { 0 };
            continue;
        }
        let finding = &evidence.findings[claim.finding];
        if !shown.row().is_mendable && finding.owner != Owner::Nobody && finding.is_warning {
            mended_ns[shown as usize] += ns;
        }
        match claimed
            .iter_mut()
            .find(|(limit, nth, _)| (*limit, *nth) == (shown, claim.finding))
        {
            Some((.., sum_ns)) => *sum_ns += ns,
            None => claimed.push((shown, claim.finding, ns)),
        }
    }
    for item in SenderState::ALL {
        let shown = shown_limit(item, item.limit(false));
        if shown != item.limit(false) {
            let ns = std::mem::take(&mut left_ns[item as usize]);
            times_ns[shown as usize] += ns;
            mended_ns[shown as usize] += if is_without_loss { ns } else { 0 };
        }
    }
    let rest_ns = by_limit(&left_ns, is_slow);
    times_ns
        .iter_mut()
        .zip(rest_ns)
        .for_each(|(ns, rest)| *ns += rest);
    (times_ns, mended_ns, claimed)
}

impl Judge<'_> {
    fn judgement(&self, is_slow: bool) -> Judgement {
        let division = &self.division;
        let limit = division.first;
        let first = self.informed(limit);
        let own = first.opinion.confidence;
        let (mut confidence, mut owner, mut side) = (own, first.opinion.owner, first.opinion.side);
        let is_weak = self.is_weak(limit);
        if is_weak || share_of(division.first_ns, division.total_ns) < 0.5 {
            // What a rule found, it found in the same packets.
            confidence = confidence.min(Confidence::Likely);
        }
        if is_weak || division.second.is_some() {
            confidence = confidence.min(own.lower());
        }
        confidence = confidence.min(self.seen.most(limit));
        if limit == Limit::PathLoss && owner == Owner::Network {
            // The losses are read off the packets; that no policer and no other's queue caused them is judged.
            confidence = confidence.min(Confidence::Likely);
        }
        if division.total_ns == 0 {
            // Nothing limited what is over with its first packet.
            confidence = Confidence::Certain;
        }
        let is_doubled = self.seen.is_doubled();
        let is_subflow = limit == Limit::SenderApplication && self.facts.connection.multipath;
        if is_doubled || is_subflow {
            confidence = Confidence::Possible;
        }
        if is_doubled && owner == Owner::Network {
            (owner, side) = (Owner::Nobody, None);
        }
        let silent_ns = silent_by_limit(&self.evidence.items_ns, is_slow);
        let life = Life {
            times_ns: &division.times_ns,
            silent_ns: &silent_ns,
            carried: Carried::of(self.facts),
            is_growing: is_growing(&self.evidence.items_ns),
        };
        let gain = life.gain(limit);
        let (low_ns, high_ns) = self.bounds(limit, gain.low_ns, gain.high_ns);
        let also = division.also.map(|also| (also, self.informed(also)));
        let also_ns = division.also.map_or(0, |also| {
            let [lost_ns, time_ns] =
                [division.lost_to_ns, division.times_ns].map(|times| times[also as usize]);
            part_of(life.gain(also).likely_ns, lost_ns, time_ns)
        });
        let told = also.as_ref().map_or(&first, |(_, informed)| informed);
        Judgement {
            is_slow,
            is_empty: division.total_ns == 0,
            cost_ns: gain.likely_ns,
            cost_low_ns: if confidence == Confidence::Possible {
                0
            } else {
                low_ns
            },
            cost_high_ns: high_ns,
            confidence,
            owner,
            side,
            reason: first.opinion.reason,
            meaning: first.opinion.meaning,
            is_doubled,
            is_subflow,
            also_ns,
            fix: told.opinion.fix,
            witness: first.witness,
            fix_witness: told.witness,
            reason_finding: first.finding,
            fix_finding: told.finding,
            standing: self.standing(limit),
            division: self.division.clone(),
        }
    }

    fn standing(&self, limit: Limit) -> Standing {
        let division = &self.division;
        let is_mendable = |limit: Limit| limit.row().is_mendable;
        if division.loss.is_problem || self.facts.connection.sampled {
            Standing::Limited
        } else if is_mendable(limit) || division.second.is_some_and(is_mendable) {
            Standing::Slight
        } else if limit == Limit::SenderApplication
            && self.facts.data.is_answering(&self.evidence.items_ns)
        {
            Standing::FineInTcp
        } else {
            Standing::Fine
        }
    }

    /// What the limit means, with what a finding and the other end's capture say of it.
    fn informed(&self, limit: Limit) -> Informed {
        let (opinion, finding) = self.with_finding(limit, self.seen.opinion(limit));
        let receiver = self.facts.sender().other();
        let (opinion, witness) = match &self.evidence.crossing {
            Some(crossing) => crossing.opinion(limit, receiver, opinion),
            None => (opinion, Witness::Silent),
        };
        Informed {
            opinion,
            finding,
            witness,
        }
    }

    /// What the limit means, with what the finding says that claims most of its time.
    fn with_finding(&self, limit: Limit, opinion: Opinion) -> (Opinion, Option<usize>) {
        let findings = &self.evidence.findings;
        let most = |is_telling: &dyn Fn(&Finding) -> bool| {
            let mut most: Option<(usize, i64)> = None;
            for (_, nth, ns) in self.claimed.iter().filter(|(of, ..)| *of == limit) {
                if is_telling(&findings[*nth]) && most.is_none_or(|(_, most_ns)| *ns > most_ns) {
                    most = Some((*nth, *ns));
                }
            }
            most
        };
        let with_fix = |opinion: Opinion, finding: &Finding| {
            let fix = if finding.has_remedy {
                Fix::OfFinding
            } else {
                opinion.fix
            };
            Opinion { fix, ..opinion }
        };
        if let Some((nth, _)) = most(&|each| each.is_warning && each.cost_ns >= MIN_COST_NS) {
            let about = &findings[nth];
            let is_own = about.owner.is_of_either_end() || about.owner == opinion.owner;
            let surer = |least: Confidence| least.max(about.confidence);
            let told = if is_own {
                let side = if about.owner.is_of_either_end() {
                    opinion.side
                } else {
                    about.side
                };
                opinion.restated(opinion.owner, side, surer(opinion.confidence))
            } else {
                let confidence = opinion
                    .confidence
                    .max(Confidence::Likely)
                    .min(about.confidence);
                let told = opinion.restated(about.owner, about.side, confidence);
                Opinion {
                    reason: Reason::Finding,
                    ..told
                }
            };
            return (with_fix(told, about), Some(nth));
        }
        // One that costs too little to judge by may still show most of the limit's time, and what to do.
        match most(&|each| each.is_warning) {
            Some((nth, ns))
                if limit.row().is_mendable
                    && findings[nth].owner == opinion.owner
                    && ns * 2 >= self.division.times_ns[limit as usize] =>
            {
                (with_fix(opinion, &findings[nth]), Some(nth))
            }
            _ => (opinion, None),
        }
    }

    /// What the model allows, and packets and kernel where they differ about the limit's time.
    fn bounds(&self, limit: Limit, low_ns: i64, high_ns: i64) -> (i64, i64) {
        let evidence = self.evidence;
        let apart_ns: i64 = Seen::items_of(limit)
            .map(|item| evidence.packets_ns[item as usize] - evidence.items_ns[item as usize])
            .sum();
        let other_ns = (high_ns + apart_ns).max(0).min(self.division.total_ns);
        (low_ns.min(other_ns), high_ns.max(other_ns))
    }

    /// Whether the capture is not whole, or packets and kernel differ.
    fn is_weak(&self, limit: Limit) -> bool {
        let is_disputed = matches!(
            limit,
            Limit::ReceiverWindow
                | Limit::ReceiverApplication
                | Limit::CongestionControl
                | Limit::PathLoss
                | Limit::PathRate
        );
        let total_ns = self.division.total_ns;
        let differs = self.evidence.kernel_window_ns.is_some_and(|kernel_ns| {
            let apart_ns = (sum_of(&self.evidence.packets_ns, ItemTrait::Window) - kernel_ns).abs();
            is_disputed && share_of(apart_ns, total_ns) > DISAGREEING_SHARE
        });
        self.facts.data.is_missed() || self.evidence.is_capture_lossy || differs
    }
}
