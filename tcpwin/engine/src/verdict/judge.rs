//! Judges a direction from its budget, the findings of rules and the other end's capture.
//!
//! A finding can attribute time to a more specific limit, and name who can change it.

use crate::tables::budget_item::{ItemTrait, SenderState};
use crate::tables::limit::{Limit, LIMITS};
use crate::verdict::budget::{sum_of, Items};
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::crossing::{Crossing, Witness};
use crate::verdict::division::{by_limit, Division, Doubts, Times, MIN_COST_NS};
use crate::verdict::facts::Facts;
use crate::verdict::gain::{part_of, silent_by_limit, Carried, Life};
use crate::verdict::opinion::{Fix, Kernel, Meaning, Opinion, Reason, Seen};
use crate::verdict::owner::{End, Owner};
use crate::verdict::traits::{is_answering, is_growing, is_slow};

/// Share of the duration above which a difference between packets and kernel is a disagreement.
const DISAGREEING_SHARE: f64 = 0.1;

/// A finding without its text.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    pub owner: Owner,
    pub side: Option<End>,
    pub confidence: Confidence,
    /// Whether it is a warning rather than an explanation.
    pub is_warning: bool,
    pub cost_ns: i64,
    /// Whether it recommends a fix.
    pub has_remedy: bool,
    /// Whether it is an error: then something needs a fix.
    pub is_error: bool,
    /// The limit that it reports, even if that took no time: a reset, or a field that was rewritten.
    pub fault: Option<Limit>,
}

/// Time of an item that a finding attributes to a limit.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Index of the finding; the claims of one finding are consecutive.
    pub finding: usize,
    pub item: SenderState,
    pub limit: Limit,
    pub ns: i64,
}

/// A direction's budget and all other evidence about it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The budget, corrected by the kernel's counters and the other end's capture.
    pub items_ns: Items,
    /// The budget from the packets alone.
    pub packets_ns: Items,
    /// How long the sender's kernel waited, if its counters are available.
    pub kernel: Option<Kernel>,
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    pub crossing: Option<Crossing>,
    /// Whether the capture lost packets of any connection.
    pub is_capture_lossy: bool,
}

codes! {
    /// Whether there is something to fix.
    Standing:
    /// A problem, or a sampled capture that cannot rule one out.
    Limited "limited",
    /// Too little time was lost to be a problem.
    Slight "slight",
    Fine "fine",
    /// Nothing to fix in the first limit, but an error or warning names something else.
    Reported "reported",
    /// TCP is fine, but the application may have something to fix.
    FineInTcp "fine_in_tcp",
}

/// The judgement of a direction. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Judgement {
    pub division: Division,
    pub is_slow: bool,
    /// Whether the duration is 0, so that there is nothing to judge.
    pub is_empty: bool,
    pub cost_ns: i64,
    pub cost_low_ns: i64,
    pub cost_high_ns: i64,
    pub confidence: Confidence,
    pub owner: Owner,
    pub side: Option<End>,
    pub reason: Reason,
    pub meaning: Meaning,
    pub numbers: [f64; 2],
    /// Whether the capture seems to hold each packet twice.
    pub is_doubled: bool,
    /// Whether other subflows may have carried the data.
    pub is_subflow: bool,
    /// Whether the first limit concerns data from b to a.
    pub is_back_limited: bool,
    /// Cost of the limit `also`; 0 if there is none.
    pub also_ns: i64,
    /// Fix for the limit `also` if there is one, else for the first limit.
    pub fix: Fix,
    /// Evidence of both captures about the first limit, and about the one that the fix addresses.
    pub witness: Witness,
    pub fix_witness: Witness,
    /// Indices of the findings that supply the reason and the fix.
    pub reason_finding: Option<usize>,
    pub fix_finding: Option<usize>,
    pub standing: Standing,
    /// Whether the lost time or an error deserves attention.
    pub is_problem: bool,
}

impl Judgement {
    /// Return the first limit's share of the connection's duration.
    pub fn share(&self) -> f64 {
        share_of(self.division.first_ns, self.division.total_ns)
    }

    pub fn second_share(&self) -> f64 {
        share_of(self.division.second_ns, self.division.total_ns)
    }

    pub fn also_share(&self) -> f64 {
        share_of(self.also_ns, self.division.total_ns)
    }

    /// Return the lost time as a share of the time in which the sender had work.
    pub fn lost_share(&self) -> f64 {
        share_of(self.division.loss.lost_ns, self.division.loss.busy_ns)
    }

    /// Return the cost of the limit that the fix addresses: the first, or `also`.
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

/// An opinion about a limit, with the finding and the witness that shaped it.
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
    /// Time of each limit that each finding claims.
    claimed: Vec<(Limit, usize, i64)>,
}

/// Judge a direction.
pub fn judge(facts: &Facts, evidence: &Evidence) -> Judgement {
    // The kernel counts waits for the window, whatever keeps it small; the packets show the reader.
    let is_slow = is_slow(&facts.data, &evidence.packets_ns);
    let (times_ns, mended_ns, claimed) = settle(evidence, is_slow);
    let doubts = Doubts {
        is_disturbed: facts.is_handshake_disturbed(),
        is_stalled: facts.is_stalled(),
        is_sampled: facts.connection.sampled,
        exchanges: facts.connection.exchanges,
    };
    let mut division = Division::of(&times_ns, &mended_ns, doubts);
    division.put_round_trips_before_losses(&silent_by_limit(&evidence.items_ns, is_slow));
    let crossing = evidence.crossing.as_ref();
    let is_shown = |fault| !crossing.is_some_and(|crossing| crossing.contradicts(fault));
    let faults = (evidence.findings.iter())
        .filter(|each| each.is_warning && each.fault.is_none_or(is_shown));
    let worst = faults.max_by_key(|each| (each.fault.is_some(), each.is_error, each.cost_ns));
    if let Some((fault, is_error)) = worst.and_then(|each| Some((each.fault?, each.is_error))) {
        division.put_first(fault, is_error);
    }
    let judge = Judge {
        facts,
        evidence,
        seen: Seen {
            facts,
            items_ns: &evidence.items_ns,
            kernel: evidence.kernel,
        },
        division,
        claimed,
    };
    judge.judgement(is_slow)
}

/// Attribute the budget's time to limits.
///
/// Returns the time of each limit, the excess time of limits that work as designed, and the time that each finding claims.
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
    // If nothing was lost, all time that the crossing moves to another limit is avoidable.
    let is_without_loss = crossing.is_some_and(Crossing::is_without_loss);
    let mut left_ns = evidence.items_ns;
    let (mut times_ns, mut mended_ns) = ([0; LIMITS], [0; LIMITS]);
    let mut claimed: Vec<(Limit, usize, i64)> = Vec::new();
    for claim in &evidence.claims {
        // A finding cannot claim time that the other end's capture removed from the item.
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
        let is_part = share_of(division.first_ns, division.total_ns) < 0.5;
        if is_weak || is_part && !limit.is_fault() {
            // A rule reads the same packets, so a finding cannot raise this.
            confidence = confidence.min(Confidence::Likely);
        }
        if is_weak || division.second.is_some() && !limit.is_fault() {
            confidence = confidence.min(own.lower());
        }
        confidence = confidence.min(self.seen.most(limit));
        if limit == Limit::PathLoss && owner == Owner::Network {
            // The packets show the losses; that neither a policer nor someone else's queue caused them is inferred.
            confidence = confidence.min(Confidence::Likely);
        }
        if division.total_ns == 0 {
            // A connection without duration was not limited.
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
        let mut silent_ns = silent_by_limit(&self.evidence.items_ns, is_slow);
        for (item, fault, ns) in self.silent_faults() {
            silent_ns[item.limit(is_slow) as usize] -= ns;
            silent_ns[fault as usize] += ns;
        }
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
        let about_fix = also.as_ref().map_or(&first, |(_, informed)| informed);
        let (mut fix, mut fix_finding) = (about_fix.opinion.fix, about_fix.finding);
        let standing = self.standing(limit);
        let reported = self.reported().filter(|_| standing == Standing::Reported);
        if let Some(nth) = reported {
            (fix, fix_finding) = (Fix::OfFinding, Some(nth));
        }
        let is_error = reported.is_some_and(|nth| self.evidence.findings[nth].is_error);
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
            numbers: first.opinion.numbers,
            is_doubled,
            is_subflow,
            is_back_limited: match limit {
                // The responder answers, whichever direction is judged.
                Limit::SenderApplication if is_answering(&self.evidence.items_ns) => true,
                _ => self.facts.is_back,
            },
            also_ns,
            fix,
            witness: first.witness,
            fix_witness: about_fix.witness,
            reason_finding: first.finding,
            fix_finding,
            standing,
            is_problem: division.loss.is_problem || is_error,
            division: self.division.clone(),
        }
    }

    fn standing(&self, limit: Limit) -> Standing {
        let division = &self.division;
        let is_mendable = |limit: Limit| limit.row().is_mendable;
        if division.loss.is_problem || self.facts.connection.sampled {
            Standing::Limited
        } else if self.reported().is_some() {
            Standing::Reported
        } else if is_mendable(limit) || division.second.is_some_and(is_mendable) {
            Standing::Slight
        } else if limit == Limit::SenderApplication && is_answering(&self.evidence.items_ns) {
            Standing::FineInTcp
        } else {
            Standing::Fine
        }
    }

    /// Return the silence that findings attribute to faults instead of to its items' limits.
    fn silent_faults(&self) -> impl Iterator<Item = (SenderState, Limit, i64)> + '_ {
        let claims = self.evidence.claims.iter();
        claims
            .filter(|claim| claim.limit.is_fault() && claim.item.has(ItemTrait::Silent))
            .map(|claim| (claim.item, claim.limit, claim.ns))
    }

    /// Return the worst finding that recommends a fix, for a connection that lost no time to a limit that can be fixed.
    fn reported(&self) -> Option<usize> {
        let is_fixable = |each: &Finding| each.is_error || each.is_warning && each.has_remedy;
        let findings = self.evidence.findings.iter().enumerate();
        findings
            .filter(|(_, each)| is_fixable(each))
            .max_by_key(|(nth, each)| (each.is_error, each.cost_ns, std::cmp::Reverse(*nth)))
            .map(|(nth, _)| nth)
    }

    /// Form an opinion about the limit from the direction, the findings and the other end's capture.
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

    /// Refine the opinion with the finding that claims most of the limit's time.
    fn with_finding(&self, limit: Limit, opinion: Opinion) -> (Opinion, Option<usize>) {
        let findings = &self.evidence.findings;
        let most = |is_candidate: &dyn Fn(&Finding) -> bool| {
            let mut most: Option<(usize, i64)> = None;
            for (_, nth, ns) in self.claimed.iter().filter(|(of, ..)| *of == limit) {
                if is_candidate(&findings[*nth]) && most.is_none_or(|(_, most_ns)| *ns > most_ns) {
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
        let is_reported = findings.iter().any(|each| each.fault == Some(limit));
        if limit.is_fault() || is_reported {
            return self.with_fault(limit, opinion);
        }
        if let Some((nth, _)) = most(&|each| each.is_warning && each.cost_ns >= MIN_COST_NS) {
            let about = &findings[nth];
            let is_own = about.owner.is_of_either_end() || about.owner == opinion.owner;
            let surer = |least: Confidence| least.max(about.confidence);
            let restated = if is_own {
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
                let restated = opinion.restated(about.owner, about.side, confidence);
                Opinion {
                    reason: Reason::Finding,
                    ..restated
                }
            };
            return (with_fix(restated, about), Some(nth));
        }
        // A finding that costs too little to change the opinion may still explain most of the limit's time and name a fix.
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

    /// Take owner, confidence and fix of a fault from the worst finding that reports it.
    fn with_fault(&self, limit: Limit, opinion: Opinion) -> (Opinion, Option<usize>) {
        let findings = self.evidence.findings.iter().enumerate();
        let about = findings
            .filter(|(_, each)| each.fault == Some(limit) && each.is_warning)
            .max_by_key(|(nth, each)| (each.is_error, each.cost_ns, std::cmp::Reverse(*nth)));
        let Some((nth, about)) = about else {
            return (opinion, None);
        };
        let restated = opinion.restated(about.owner, about.side, about.confidence);
        let reported = Opinion {
            reason: Reason::Finding,
            fix: Fix::OfFinding,
            ..restated
        };
        (reported, Some(nth))
    }

    /// Widen the model's bounds by the difference between packets and kernel about the limit's time.
    fn bounds(&self, limit: Limit, low_ns: i64, high_ns: i64) -> (i64, i64) {
        let evidence = self.evidence;
        let apart_ns: i64 = Seen::items_of(limit)
            .map(|item| evidence.packets_ns[item as usize] - evidence.items_ns[item as usize])
            .sum();
        let other_ns = (high_ns + apart_ns).max(0).min(self.division.total_ns);
        (low_ns.min(other_ns), high_ns.max(other_ns))
    }

    /// Return whether the capture is incomplete, or packets and kernel disagree.
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
        let differs = self.evidence.kernel.is_some_and(|kernel| {
            let by_packets_ns = sum_of(&self.evidence.packets_ns, ItemTrait::Window);
            let apart_ns = (by_packets_ns - kernel.window_ns).abs();
            is_disputed && share_of(apart_ns, total_ns) > DISAGREEING_SHARE
        });
        self.facts.data.is_missed() || self.evidence.is_capture_lossy || differs
    }
}
