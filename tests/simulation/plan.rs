//! A history: a mesh to begin with and what happens to it. All of it is plain data, so that a history that
//! fails can be shrunk and printed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::weighted;
use proptest::prelude::*;

/// A mesh and what happens to it.
#[derive(Debug, Clone)]
pub struct Plan {
    pub machines: usize,
    pub services: Vec<ServicePlan>,
    pub ops: Vec<Op>,
}

/// A service as it is first declared. Indexes are taken modulo what there is.
#[derive(Debug, Clone)]
pub struct ServicePlan {
    pub machines: BTreeSet<usize>,
    /// Services before it, with `true` for one that it waits for.
    pub consumes: BTreeMap<usize, bool>,
    /// A service after it, that it does not wait for: a circle that the check allows.
    pub circle: Option<usize>,
    pub start_first: bool,
    /// Of the last service only; the others all provide.
    pub provides: bool,
}

/// Something that happens.
#[derive(Debug, Clone)]
pub enum Op {
    Push(PushPlan),
    Assign(usize, BTreeSet<usize>),
    Unassign(usize),
    Rotate(usize),
    Cut(usize),
    Revoke(usize),
    Issue(usize, usize),
    Hold(usize),
    Unhold,
    Down(usize),
    Up,
    Edit(usize),
    /// The nth consumption of a service wants something else.
    Want(usize, usize, u8),
    /// A service gains or loses its consumption of another.
    Consume(usize, usize),
    /// A service turns its move.
    Turn(usize),
    /// A service leaves the declaration, or comes back to it.
    Withdraw(usize),
    /// A machine goes down and is given up: the nth service on it counts as gone.
    Forget(usize, usize),
    /// An uncertain machine goes down, or on hold.
    Lose(usize, Loss),
    /// A machine is made anew.
    Empty(usize),
    /// A service provides no more, and whoever consumed it no longer does; or it provides again.
    Provide(usize),
    /// A machine changes its address.
    Readdress(usize),
    /// A machine is sent to below another root, where nothing is yet.
    Reroot(usize),
    /// The root of a machine is mistyped: nothing can be written there.
    Misroot(usize),
    /// Mistyped roots are put right.
    PutRight,
    /// Somebody pushes to a machine from another store.
    Intrude(usize),
    /// Somebody changed a list by hand on a machine.
    Drift(usize),
}

/// How an uncertain machine is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Down,
    Hold,
    /// Down, and a service that may be on it counts as gone.
    Forgotten,
}

/// A push, what fails in it, and where its controller dies.
#[derive(Debug, Clone)]
pub struct PushPlan {
    pub whom: Whom,
    pub faults: Vec<Fault>,
    pub death: Option<Death>,
    /// In which order sends arrive and are heard of.
    pub order: u8,
    /// `--take-over`.
    pub take_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    One(usize),
    All,
    Behind,
}

/// The `at`th send or question of a push fails so; `step` says where.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub at: usize,
    pub kind: FaultKind,
    pub step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// No connection.
    NotReached,
    /// It broke before anything arrived.
    Broken,
    /// Applied, and the receipt is lost.
    ReceiptLost,
    /// The machine stopped in mid apply.
    Interrupted,
    /// A step failed and the previous release was put back.
    RolledBack,
    /// That failed too.
    RollBackFailed,
    /// `test` refused.
    Refused,
}

/// Where the controller dies.
#[derive(Debug, Clone, Copy)]
pub enum Death {
    /// Before the nth commit of the push is applied, after it, or the disk is full.
    BeforeCommit(u64),
    AfterCommit(u64),
    DiskFull(u64),
    /// Before the nth send arrives, or after it was applied and before it is heard of.
    BeforeArrival(usize),
    BeforeReceipt(usize),
}

fn death() -> impl Strategy<Value = Death> {
    prop_oneof![
        (2..8_u64).prop_map(Death::BeforeCommit),
        (1..8_u64).prop_map(Death::AfterCommit),
        (1..8_u64).prop_map(Death::DiskFull),
        (0..6_usize).prop_map(Death::BeforeArrival),
        (0..6_usize).prop_map(Death::BeforeReceipt),
    ]
}

fn kind() -> impl Strategy<Value = FaultKind> {
    prop_oneof![
        1 => Just(FaultKind::NotReached),
        2 => Just(FaultKind::Broken),
        3 => Just(FaultKind::ReceiptLost),
        2 => Just(FaultKind::Interrupted),
        3 => Just(FaultKind::RolledBack),
        1 => Just(FaultKind::RollBackFailed),
        1 => Just(FaultKind::Refused),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    (0..6_usize, kind(), 0..6_usize).prop_map(|(at, kind, step)| Fault { at, kind, step })
}

fn whom() -> impl Strategy<Value = Whom> {
    prop_oneof![
        3 => (0..5_usize).prop_map(Whom::One),
        2 => Just(Whom::Behind),
        1 => Just(Whom::All),
    ]
}

fn push() -> impl Strategy<Value = Op> {
    let faults = prop_oneof![2 => Just(Vec::new()), 3 => vec(fault(), 1..4)];
    let whole = (
        whom(),
        faults,
        weighted(0.12, death()),
        any::<u8>(),
        prop::bool::weighted(0.06),
    );
    whole.prop_map(|(whom, faults, death, order, take_over)| {
        Op::Push(PushPlan {
            whom,
            faults,
            death,
            order,
            take_over,
        })
    })
}

/// A push with nothing but these faults.
fn push_of(whom: Whom, faults: Vec<Fault>, order: u8) -> Op {
    Op::Push(PushPlan {
        whom,
        faults,
        death: None,
        order,
        take_over: false,
    })
}

/// Something is changed and, after a push, taken back.
fn there_and_back() -> impl Strategy<Value = (Op, Op)> {
    let service = || 0..6_usize;
    let machines = || btree_set(0..5_usize, 1..3);
    prop_oneof![
        4 => (service(), machines()).prop_map(|(s, m)| (Op::Unassign(s), Op::Assign(s, m))),
        2 => (service(), machines()).prop_map(|(s, m)| (Op::Assign(s, m), Op::Unassign(s))),
        2 => (service(), machines(), machines()).prop_map(|(s, a, b)| (Op::Assign(s, a), Op::Assign(s, b))),
        2 => (service(), 0..3_usize, any::<u8>(), any::<u8>())
            .prop_map(|(s, n, a, b)| (Op::Want(s, n, a), Op::Want(s, n, b))),
        1 => (service(), service()).prop_map(|(c, p)| (Op::Consume(c, p), Op::Consume(c, p))),
        1 => service().prop_map(|s| (Op::Withdraw(s), Op::Withdraw(s))),
        1 => (0..12_usize, service()).prop_map(|(n, s)| (Op::Cut(n), Op::Edit(s))),
        1 => (0..12_usize, service()).prop_map(|(n, s)| (Op::Rotate(n), Op::Edit(s))),
    ]
}

/// A change meets a push that fails, what is uncertain then is out of reach, and the change is taken back.
fn taken_back() -> impl Strategy<Value = Vec<Op>> {
    let loss = prop_oneof![
        3 => Just(Loss::Down),
        3 => Just(Loss::Hold),
        2 => Just(Loss::Forgotten),
    ];
    let faults = vec((0..4_usize, kind(), 0..6_usize), 1..3);
    let lost = weighted(0.8, (0..4_usize, loss));
    (there_and_back(), whom(), faults, lost, whom(), any::<u8>()).prop_map(
        |((there, back), first, faults, lost, second, order)| {
            let faults = faults
                .into_iter()
                .map(|(at, kind, step)| Fault { at, kind, step });
            let mut ops = vec![there, push_of(first, faults.collect(), order)];
            ops.extend(lost.map(|(n, loss)| Op::Lose(n, loss)));
            ops.extend([back, push_of(second, Vec::new(), order)]);
            ops
        },
    )
}

/// A root is mistyped, a push finds nothing there and can send nothing, and the root is put right.
fn mistyped() -> impl Strategy<Value = Vec<Op>> {
    let fault = vec((0..4_usize, kind(), 0..6_usize), 0..2);
    (0..5_usize, fault, whom(), op(), whom(), any::<u8>()).prop_map(
        |(machine, faults, first, meanwhile, second, order)| {
            let faults = faults
                .into_iter()
                .map(|(at, kind, step)| Fault { at, kind, step });
            vec![
                Op::Misroot(machine),
                push_of(first, faults.collect(), order),
                meanwhile,
                Op::PutRight,
                push_of(second, Vec::new(), order),
            ]
        },
    )
}

/// Several services leave at once, those too that are bound to each other.
fn all_leave() -> impl Strategy<Value = Vec<Op>> {
    (btree_set(0..6_usize, 2..5), whom(), any::<u8>()).prop_map(|(services, whom, order)| {
        let leave = services.into_iter().map(Op::Unassign);
        leave.chain([push_of(whom, Vec::new(), order)]).collect()
    })
}

/// What happens: mostly one thing after the other, at times a few that belong together.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let some = prop_oneof![
        16 => op().prop_map(|op| vec![op]),
        2 => taken_back(),
        1 => mistyped(),
        1 => all_leave(),
    ];
    vec(some, 4..24).prop_map(|all| all.into_iter().flatten().collect())
}

fn op() -> impl Strategy<Value = Op> {
    let service = || 0..6_usize;
    let machine = || 0..5_usize;
    prop_oneof![
        24 => push(),
        9 => (service(), btree_set(machine(), 1..3)).prop_map(|(s, m)| Op::Assign(s, m)),
        4 => service().prop_map(Op::Unassign),
        8 => (0..12_usize).prop_map(Op::Rotate),
        2 => (0..12_usize).prop_map(Op::Cut),
        3 => (0..12_usize).prop_map(Op::Revoke),
        4 => (service(), service()).prop_map(|(p, c)| Op::Issue(p, c)),
        5 => machine().prop_map(Op::Hold),
        4 => Just(Op::Unhold),
        5 => machine().prop_map(Op::Down),
        5 => Just(Op::Up),
        4 => service().prop_map(Op::Edit),
        4 => (service(), 0..3_usize, any::<u8>()).prop_map(|(s, n, w)| Op::Want(s, n, w)),
        3 => (service(), service()).prop_map(|(c, p)| Op::Consume(c, p)),
        1 => service().prop_map(Op::Turn),
        1 => service().prop_map(Op::Withdraw),
        2 => (machine(), service()).prop_map(|(m, s)| Op::Forget(m, s)),
        1 => machine().prop_map(Op::Empty),
        1 => service().prop_map(Op::Provide),
        1 => machine().prop_map(Op::Readdress),
        1 => machine().prop_map(Op::Reroot),
        1 => machine().prop_map(Op::Misroot),
        1 => Just(Op::PutRight),
        1 => machine().prop_map(Op::Intrude),
        1 => machine().prop_map(Op::Drift),
    ]
}

fn service() -> impl Strategy<Value = ServicePlan> {
    let machines = prop_oneof![
        1 => Just(BTreeSet::new()),
        8 => btree_set(0..5_usize, 1..=1),
        2 => btree_set(0..5_usize, 2..=2),
    ];
    (
        machines,
        btree_map(0..6_usize, prop::bool::weighted(0.85), 0..3),
        weighted(0.12, 0..6_usize),
        prop::bool::weighted(0.35),
        any::<bool>(),
    )
        .prop_map(
            |(machines, consumes, circle, start_first, provides)| ServicePlan {
                machines,
                consumes,
                circle,
                start_first,
                provides,
            },
        )
}

/// Small meshes more often than large ones: what is rare needs few machines and many events.
pub fn plan() -> impl Strategy<Value = Plan> {
    let machines = prop_oneof![4 => 2..=3_usize, 2 => 4..=5_usize];
    let services = prop_oneof![4 => vec(service(), 2..=3), 3 => vec(service(), 4..=6)];
    (machines, services, ops()).prop_map(|(machines, services, ops)| Plan {
        machines,
        services,
        ops,
    })
}
