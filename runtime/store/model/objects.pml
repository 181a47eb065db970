/* Object ownership, borrowing and segment recycling.  Spin 6.5 model of runtime/store/README.md.
 * Part 1 (default):   an owner that is also the maker, two borrowers that may hand the reference on to each other, one segment rewritten
 *                     for each object (object number = generation), a forked child per borrower, and a network that delays, loses and
 *                     duplicates at reconnection.  Faults: connection loss, a strike (time-out of a live peer), fork, death of anyone.
 * Part 2 (-DTRANSFER): an actor (maker) returns values to its caller (owner) under the eyes of the node's worker (keeper), see below.
 * Every run is finite (all budgets are bounded), so "no hang" and "no leak" are: each run ends in a quiet state (ltl settled).
 * Mutants: -DBUG_...  Every mutant must be REJECTED; the plain model must pass. */
#ifndef FAULTS
#define FAULTS 2            /* faults in all; of each kind at most: */
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef STRIKES
#define STRIKES 1
#endif
#ifndef FORKS
#define FORKS 1
#endif
#ifndef GIVES
#define GIVES 3             /* references passed, by the owner or by a borrower */
#endif
#ifndef MAXG
#define MAXG 2              /* objects written into the segment: generations 1..MAXG */
#endif

/* -DONLY=k checks only invariant Ok, so that a mutant is seen to break the one it should; 9 = the model's own sanity */
#ifndef ONLY
#define ONLY 0
#endif
#define CHECK(k, x) assert(!(ONLY == 0 || ONLY == k) || (x))

#ifndef TRANSFER
mtype = { GIVE, HOLD, HOLDOK, GONE, DROP, DROPOK, SETTLE };
mtype = { FREE, LENT, ABANDONED };                     /* segment */
mtype = { NONE, REG, HELD, DROPPING, DEAD };           /* a reference at a borrower; also LENT: read under the owner's loan, unregistered */
#define NB 3
#define J (3 - i)

bool up[NB] = true;                                    /* 0 = owner, 1 and 2 = borrowers */
chan o2b[NB] = [3] of { mtype, byte, byte };           /* type, object, number */
chan b2o[NB] = [3] of { mtype, byte, byte, byte };     /* type, object, number, (HOLD: owner's loan it settles; DROP: clean) */
chan b2b[NB] = [3] of { mtype, byte, byte };           /* from i to the other borrower */
chan stale[NB] = [1] of { mtype, byte, byte, byte };   /* a frame of a dead connection, still to be read by the owner */

/* ---- owner (and maker) ---- */
mtype seg = FREE; byte gen = 0;                        /* what the segment's bytes are */
byte obj = 0;                                          /* live object, 0 = none */
bool mine = false, dirty = false;                      /* the owner's own handle; somebody left without a clean release */
bool bor[NB], loan[NB], struck[NB]; byte loank[NB], last[NB];
/* ---- borrowers ---- */
mtype st[NB] = NONE; byte o[NB], n[NB], again[NB];
bool h[NB], lo[NB], fk[NB], rd[NB], kn[NB], un[NB];    /*  handle; loan out to the other; forked while a view lived; lent by the owner; knows other's death; last Settle was unclean */
byte v[NB];                                            /* view: 0 not yet, 1 mapped and read, 2 gone */
bool oweO[NB], oweB[NB]; byte seenO[NB], seenB[NB], lk[NB];
byte child[NB];                                        /* generation a forked child still reads */
byte faults, losses = 0, deaths = 0, strikes = 0, forks = 0, gives = 0;   /* faults: how many this run has, chosen at its start */
bool g_handon = false, g_gone = false;                 /* ghosts */

#define LEFT(k, max) (k < max && losses + deaths + strikes + forks < faults)

inline FLUSH3(c) { do :: nempty(c) -> c?_,_,_ :: empty(c) -> break od }
inline FLUSH4(c) { do :: nempty(c) -> c?_,_,_,_ :: empty(c) -> break od }

#define READERS (v[1] == 1 && up[1] || v[2] == 1 && up[2] || child[1] || child[2])
#define IDLE(i) (!up[i] || (!h[i] && v[i] != 1 && !lo[i] && !oweO[i] && !oweB[i] && (st[i] == NONE || st[i] == DEAD)))
#define WAITSNOT(i) (!up[i] || st[i] == NONE || st[i] == DEAD)                      /* no get, release or hand-on under way */
#define RELEASED (!up[0] || (obj == 0 && seg != LENT))
#define QUIET   (IDLE(1) && IDLE(2) && (!up[0] || (!mine && obj == 0 && seg != LENT)))

/* ---------------- owner: each handler is one event-loop turn ---------------- */
inline STRIKE(i, taint) {                              /* remove a borrower that did not release: the segment is never rewritten */
  struck[i] = true; dirty = dirty || ((bor[i] || loan[i]) && taint); bor[i] = false; loan[i] = false; last[i] = 0; loank[i] = 0;
  FLUSH4(b2o[i]); FLUSH4(stale[i]); FLUSH3(o2b[i])
}
inline ONFRAME(i, t, ob, k, x) {
  if
  :: struck[i] -> skip
  :: !struck[i] && t == SETTLE -> if :: loan[i] && loank[i] == k -> loan[i] = false; dirty = dirty || !x :: else fi
  :: !struck[i] && t == HOLD ->
       if
       :: k > last[i] -> last[i] = k;
            if
            :: ob == obj -> bor[i] = true; if :: loan[i] && loank[i] == x -> loan[i] = false :: else fi; o2b[i]!HOLDOK(ob, k)
            :: else -> o2b[i]!GONE(ob, k)
            fi
       :: k == last[i] && st[i] == REG -> if :: bor[i] && ob == obj -> o2b[i]!HOLDOK(ob, k) :: else -> o2b[i]!GONE(ob, k) fi   /* the answer was lost */
       :: else
       fi
  :: !struck[i] && t == DROP ->
       if
#ifdef BUG_DUP_DROP
       :: ob == obj -> bor[i] = false; dirty = dirty || !x; o2b[i]!DROPOK(ob, k)
#else
       :: k > last[i] -> last[i] = k; CHECK(5, ob == obj && bor[i]);                  /* O5: nobody is removed twice */
            bor[i] = false; dirty = dirty || !x; o2b[i]!DROPOK(ob, k)
       :: k == last[i] -> o2b[i]!DROPOK(ob, k)
#endif
       :: else
       fi
  fi
}
proctype Owner() {
  mtype t; byte ob, k, x, i;
end: do
  :: atomic { up[0] && seg == FREE && gen < MAXG ->    /* put: rewrites the segment */
       CHECK(1, !READERS);                              /* O1 */
#ifdef REACH
       assert(!(gen > 0 && g_handon && losses && losses + strikes + deaths + forks == FAULTS));          /* vacuity: must FAIL */
#endif
       gen++; obj = gen; seg = LENT; mine = true; dirty = false }
  :: atomic { up[0] && mine -> mine = false }          /* the user drops the owner's handle */
  :: atomic { up[0] && obj && !mine && !bor[1] && !bor[2] && !loan[1] && !loan[2] ->
       obj = 0; if :: dirty -> seg = ABANDONED :: else -> seg = FREE fi }
  :: atomic { up[0] && nempty(b2o[1]) && nfull(o2b[1]) -> b2o[1]?t,ob,k,x; ONFRAME(1, t, ob, k, x); t = 0; ob = 0; k = 0; x = 0 }
  :: atomic { up[0] && nempty(b2o[2]) && nfull(o2b[2]) -> b2o[2]?t,ob,k,x; ONFRAME(2, t, ob, k, x); t = 0; ob = 0; k = 0; x = 0 }
  :: atomic { up[0] && nempty(stale[1]) && nfull(o2b[1]) -> stale[1]?t,ob,k,x; ONFRAME(1, t, ob, k, x); t = 0; ob = 0; k = 0; x = 0 }
  :: atomic { up[0] && nempty(stale[2]) && nfull(o2b[2]) -> stale[2]?t,ob,k,x; ONFRAME(2, t, ob, k, x); t = 0; ob = 0; k = 0; x = 0 }
  :: atomic { up[0] && mine && gives < GIVES && !struck[1] && !loan[1] && nfull(o2b[1]) -> gives++; loan[1] = true; loank[1]++; o2b[1]!GIVE(obj, loank[1]) }
  :: atomic { up[0] && mine && gives > 0 && gives < GIVES && !struck[2] && !loan[2] && nfull(o2b[2]) -> gives++; loan[2] = true; loank[2]++; o2b[2]!GIVE(obj, loank[2]) }
#ifndef BUG_NO_BORROWER_VERDICT
#ifdef BUG_DEATH_RELEASES
  :: atomic { up[0] && !up[1] && !struck[1] -> STRIKE(1, false) }
  :: atomic { up[0] && !up[2] && !struck[2] -> STRIKE(2, false) }
#else
  :: atomic { up[0] && !up[1] && !struck[1] -> STRIKE(1, true) }                    /* verdict pushed by the node's worker */
  :: atomic { up[0] && !up[2] && !struck[2] -> STRIKE(2, true) }
#endif
#endif
  od
}

/* ---------------- borrower ---------------- */
#define SETTLES (rd[i] -> seenO[i] : 0)                /* a Settle on its way keeps its own place in the stream */
#ifdef BUG_HELLO_CLEAN
#define UNCLEAN false
#else
#define UNCLEAN (un[i] && seenO[i] == loank[i])
#endif
inline REGISTER(i, ob) {
  o[i] = ob; st[i] = REG; n[i]++; oweO[i] = false; b2o[i]!HOLD(ob, n[i], SETTLES)
}
inline SETTLEB(i) { if :: oweB[i] -> oweB[i] = false; if :: up[J] -> b2b[i]!SETTLE(0, seenB[i]) :: else fi :: else fi }
inline TAKE(i, ob, fromowner) {
  if
  :: st[i] == NONE && fromowner -> h[i] = true; rd[i] = true; v[i] = 0; fk[i] = false; o[i] = ob; st[i] = LENT
  :: st[i] == LENT -> CHECK(9, o[i] == ob && !fromowner); h[i] = true; oweB[i] = true;
#ifdef BUG_SETTLE_EARLY
       SETTLEB(i);
#endif
       REGISTER(i, ob)
  :: st[i] == NONE && !fromowner -> h[i] = true; rd[i] = false; oweB[i] = true; v[i] = 0; fk[i] = false;
#ifdef BUG_SETTLE_EARLY
       SETTLEB(i);
#endif
       REGISTER(i, ob)
  :: st[i] == REG -> CHECK(9, o[i] == ob); h[i] = true;
       if :: fromowner -> rd[i] = true; oweO[i] = true :: else -> oweB[i] = true fi
  :: st[i] == HELD -> CHECK(9, o[i] == ob); h[i] = true;
       if :: fromowner -> b2o[i]!SETTLE(ob, seenO[i], 1) :: else -> oweB[i] = true; SETTLEB(i) fi
  :: st[i] == DROPPING -> again[i] = ob; h[i] = true;   /* the release is under way: register anew after it */
       if :: fromowner -> rd[i] = true; oweO[i] = true :: else -> oweB[i] = true fi
  :: st[i] == DEAD -> oweB[i] = true; SETTLEB(i)        /* error reference */
  fi
}
inline DEADEN(i) { st[i] = DEAD; again[i] = 0; oweO[i] = false; rd[i] = false; fk[i] = false; un[i] = false; o[i] = 0; n[i] = 0; seenO[i] = 0; SETTLEB(i);
  FLUSH3(o2b[i]); FLUSH4(b2o[i]) }

#ifdef BUG_VIEW_UNCOUNTED
#define VIEWGONE true
#else
#define VIEWGONE (v[i] != 1)
#endif
#ifdef BUG_NO_LOAN_PIN
#define UNLENT true
#else
#define UNLENT (!lo[i])
#endif
#ifdef BUG_FORK_CLEAN
#define CLEAN 1
#else
#define CLEAN (!fk[i])
#endif
#ifdef BUG_MAP_AFTER_RELEASE
#define MAYMAP (st[i] == HELD || st[i] == DROPPING || st[i] == LENT || st[i] == REG && rd[i])
#else
#define MAYMAP (h[i] && (st[i] == HELD || st[i] == LENT || st[i] == REG && rd[i]))
#endif
#ifdef BUG_STALE_LICENCE
#define ENDLOAN skip
#else
#define ENDLOAN rd[i] = false                          /* a settled loan licenses no reading: the registration does */
#endif
#define ROOM (nfull(b2o[i]) && nfull(b2b[i]))

proctype Borrower(byte i) {
  mtype t; byte ob, k;
end: do
  :: atomic { up[i] && nempty(o2b[i]) && ROOM -> o2b[i]?t,ob,k;
       if
       :: t == GIVE -> seenO[i] = k; un[i] = false; TAKE(i, ob, true)
       :: t == HOLDOK && st[i] == REG && k == n[i] -> st[i] = HELD; ENDLOAN; SETTLEB(i);
            if :: oweO[i] -> oweO[i] = false; b2o[i]!SETTLE(ob, seenO[i], 1) :: else fi
       :: t == GONE && st[i] == REG && k == n[i] -> g_gone = true; /* ObjectLostError */
            CHECK(6, !up[J] || struck[J]);                                          /* O6: only if the lender died or was struck */
            h[i] = false; st[i] = NONE; oweO[i] = false; rd[i] = false; SETTLEB(i)
       :: t == DROPOK && st[i] == DROPPING && k == n[i] ->
            if :: again[i] -> ob = again[i]; again[i] = 0; v[i] = 0; fk[i] = false; REGISTER(i, ob)
               :: else -> st[i] = NONE; o[i] = 0; rd[i] = false; fk[i] = false; if :: v[i] == 2 -> v[i] = 0 :: else fi
            fi
       :: else
       fi; t = 0; ob = 0; k = 0 }
  :: atomic { up[i] && nempty(b2b[J]) && ROOM -> b2b[J]?t,ob,k;
       if
       :: t == GIVE -> seenB[i] = k; TAKE(i, ob, false)
       :: t == SETTLE -> if :: lo[i] && lk[i] == k -> lo[i] = false :: else fi
       fi; t = 0; ob = 0; k = 0 }
  :: atomic { up[i] && v[i] == 0 && MAYMAP -> CHECK(1, gen == o[i]); v[i] = 1 }       /* get: map, read */
  :: atomic { up[i] && v[i] == 1 -> v[i] = 2 }                                      /* the last view is dropped */
  :: atomic { up[i] && v[i] == 1 && LEFT(forks, FORKS) && !child[i] -> forks++; child[i] = o[i]; fk[i] = true }
  :: atomic { up[i] && h[i] -> h[i] = false }                                       /* the user drops the reference */
  :: atomic { up[i] && h[i] && (st[i] == REG || st[i] == HELD) && !lo[i] && up[J] && gives < GIVES && nfull(b2b[i]) ->   /* hand on */
       gives++; lo[i] = true; lk[i]++; g_handon = true; b2b[i]!GIVE(o[i], lk[i]) }
  :: atomic { up[i] && st[i] == LENT && (h[i] || v[i] == 1) && nfull(b2o[i]) -> REGISTER(i, o[i]) }         /* kept beyond the call */
  :: atomic { up[i] && st[i] == LENT && !h[i] && VIEWGONE && nfull(b2o[i]) -> un[i] = !CLEAN; b2o[i]!SETTLE(o[i], seenO[i], CLEAN); st[i] = NONE; rd[i] = false; o[i] = 0 }
  :: atomic { up[i] && st[i] == HELD && !h[i] && VIEWGONE && UNLENT && nfull(b2o[i]) -> /* release: no handle, no view, no loan */
       st[i] = DROPPING; n[i]++; ENDLOAN; b2o[i]!DROP(o[i], n[i], CLEAN) }
#ifndef BUG_NO_OWNER_VERDICT
  :: atomic { up[i] && !up[0] && st[i] != DEAD && ROOM -> DEADEN(i) }               /* OwnerDiedError */
#endif
  :: atomic { up[i] && struck[i] && st[i] != DEAD && ROOM -> DEADEN(i) }            /* refused at reconnection */
  :: atomic { up[i] && !up[J] && !kn[i] -> kn[i] = true; lo[i] = false; oweB[i] = false; FLUSH3(b2b[J]); FLUSH3(b2b[i]) }
  od
}

/* ---------------- network and fate ---------------- */
inline LOSE_OWNER(i) {                                 /* connection owner-i: frames lost, one of them read later; then the handshake */
  if
  :: nempty(b2o[i]) && empty(stale[i]) -> b2o[i]?t,ob,k,x; if :: t != SETTLE -> stale[i]!t,ob,k,x :: else fi
  :: true
  fi;
  FLUSH4(b2o[i]); FLUSH3(o2b[i]);
#ifdef BUG_EOF_RELEASES
  bor[i] = false; loan[i] = false;
#endif
#ifndef BUG_LOAN_FORGOTTEN
  if                                                   /* the hello says which loans were received and settled */
  :: loan[i] && (seenO[i] < loank[i] || (!oweO[i] && st[i] != LENT && !(st[i] == REG && rd[i]))) -> loan[i] = false; dirty = dirty || UNCLEAN
  :: else
  fi;
#endif
#ifndef BUG_NO_RESEND
  if :: st[i] == REG -> b2o[i]!HOLD(o[i], n[i], SETTLES)
     :: st[i] == DROPPING -> b2o[i]!DROP(o[i], n[i], CLEAN)
     :: else fi;
#endif
  t = 0; ob = 0; k = 0; x = 0
}
inline RECONCILE(a, b) { if :: lo[a] && (seenB[b] < lk[a] || !oweB[b]) -> lo[a] = false :: else fi }
inline OWNERGONE(i) { bor[i] = false; loan[i] = false; loank[i] = 0; last[i] = 0; FLUSH4(b2o[i]); FLUSH4(stale[i]) }
inline DIE(i) {                                        /* what it sent may still arrive; what was sent to it is nobody's */
  deaths++; up[i] = false; h[i] = false; v[i] = 0; st[i] = NONE; o[i] = 0; n[i] = 0; again[i] = 0; lo[i] = false; lk[i] = 0; fk[i] = false;
  rd[i] = false; un[i] = false; oweO[i] = false; oweB[i] = false; seenO[i] = 0; seenB[i] = 0; FLUSH3(o2b[i])
}
proctype Fate() {
  mtype t; byte ob, k, x, i;
end: do
  :: atomic { LEFT(losses, LOSSES) && up[0] && up[1] && !struck[1] -> losses++; i = 1; LOSE_OWNER(i); i = 0 }
  :: atomic { LEFT(losses, LOSSES) && up[0] && up[2] && !struck[2] -> losses++; i = 2; LOSE_OWNER(i); i = 0 }
  :: atomic { LEFT(losses, LOSSES) && up[1] && up[2] -> losses++; FLUSH3(b2b[1]); FLUSH3(b2b[2]); RECONCILE(1, 2); RECONCILE(2, 1) }
#ifdef BUG_TIMEOUT_FORGETS
  :: atomic { LEFT(strikes, STRIKES) && up[0] && up[1] && !struck[1] -> strikes++; STRIKE(1, false) }
  :: atomic { LEFT(strikes, STRIKES) && up[0] && up[2] && !struck[2] -> strikes++; STRIKE(2, false) }
#else
  :: atomic { LEFT(strikes, STRIKES) && up[0] && up[1] && !struck[1] -> strikes++; STRIKE(1, true) }   /* silence beyond the resume window */
  :: atomic { LEFT(strikes, STRIKES) && up[0] && up[2] && !struck[2] -> strikes++; STRIKE(2, true) }
#endif
  :: atomic { LEFT(deaths, DEATHS) && up[0] -> deaths++; up[0] = false; mine = false; obj = 0; dirty = false;
       i = 1; OWNERGONE(i); i = 2; OWNERGONE(i); i = 0 }
  :: atomic { LEFT(deaths, DEATHS) && up[1] -> i = 1; DIE(i); i = 0 }
  :: atomic { LEFT(deaths, DEATHS) && up[2] -> i = 2; DIE(i); i = 0 }
  od
}
proctype Audit() { end: atomic { timeout -> CHECK(2, RELEASED); CHECK(3, WAITSNOT(1) && WAITSNOT(2)); CHECK(2, QUIET)
#ifdef REACH2
  ; assert(!(g_gone && seg == ABANDONED && (child[1] || child[2])))     /* vacuity: must FAIL */
#endif
} }   /* every run ends quiet */
init { atomic { select(faults : 0 .. FAULTS); run Audit(); run Owner(); run Borrower(1); run Borrower(2); run Fate() } }
ltl settled { <> [] QUIET }
#endif

#ifdef TRANSFER
/* The actor M writes a large return value into its segment, assigns it at its node's worker W (the keeper), then replies to the caller O, which
 * owns it.  M and O may die at any time; the connection M-O may be lost; frames may come twice or late.  Value number = generation. */
#ifndef CALLS
#define CALLS 2
#endif
mtype = { FREE, LENT, ABANDONED };                     /* segment, as M sees it */
mtype = { NONE, READY };                               /* the value O owns */
bool upM = true, upO = true, asked = false, closed = false;  /* asked: the keeper acted on M's death; closed: O closed M's connection for good */
mtype seg = FREE; byte gen = 0, unacked = 0; bool todo = false, fdM = true;      /* M */
byte rec = 0; bool fdW = false;                        /* W: generation assigned to O; the fd */
mtype res = NONE; byte val = 0, seen = 0, calls = 0, freed = 0; bool reading = false, pend = false;  /* O; pend: a call is out */
byte other = 0;                                        /* a borrower of O that reads the value (part 1 says how it got there): 0 not yet, 1 reads, 2 released */
byte losses = 0, deaths = 0; bool g_kept = false;
chan m2w = [3] of { byte };                            /* ASSIGN(gen), 0 = FORGET: local socket, in order, outlives its sender */
chan w2o = [1] of { byte };                            /* ADOPT(gen) */
chan o2w = [3] of { byte, bool };                      /* gen, keep */
chan m2o = [3] of { byte };                            /* REPLY(gen) */
chan o2m = [3] of { byte };                            /* FREE(gen) */
chan late = [1] of { byte };                           /* FREE of an older connection */

#define IDLEO (!upO || (res == NONE && !reading && !pend))
#define RELEASED ((!upM || seg != LENT && (seg != ABANDONED || !fdM)) && (!fdW || upM && seg == FREE))
inline FLUSH(c) { do :: nempty(c) -> c?_ :: empty(c) -> break od }
inline GOTFREE(g) {
  if
#ifdef BUG_FREE_UNFENCED
  :: seg == LENT -> seg = FREE
#else
  :: seg == LENT && g == gen -> seg = FREE             /* the generation fences late and repeated ones */
#endif
  :: else
  fi
}
inline CLOSE() {                                       /* O decides once: what was not read by now never counts */
  closed = true; FLUSH(m2o); FLUSH(o2m); pend = false         /* ActorDiedError */
}
proctype Actor() {
  byte g;
end: do
  :: atomic { upM && todo && seg == FREE && nfull(m2w) -> todo = false; CHECK(1, !reading && other != 1 && !(upO && res == READY)); gen++; seg = LENT;
#ifndef BUG_REPLY_BEFORE_ASSIGN
       m2w!gen
#endif
     }
     if
     :: atomic { upM && nfull(m2o) -> unacked = gen; if :: upO && !closed -> m2o!gen :: else fi }
     :: atomic { !upM -> skip }
     fi;
#ifdef BUG_REPLY_BEFORE_ASSIGN
     if :: atomic { upM && nfull(m2w) -> m2w!gen } :: atomic { !upM -> skip } fi
#endif
  :: atomic { upM && nempty(o2m)  -> o2m?g;  GOTFREE(g); g = 0 }
  :: atomic { upM && nempty(late) -> late?g; GOTFREE(g); g = 0 }
#ifdef BUG_OWNER_DEATH_RECYCLES
  :: atomic { upM && !upO && seg == LENT && gen < CALLS -> seg = FREE; todo = true }
#else
  :: atomic { upM && !upO && seg == LENT && nfull(m2w) -> seg = ABANDONED; fdM = false; m2w!0 }  /* verdict on O; its readers may live: never rewritten */
#endif
  od
}
proctype Caller() {
  byte g;
end: do
  :: atomic { upO && upM && !closed && calls < CALLS && !pend -> calls++; pend = true; todo = true }
  :: atomic { upO && !closed && nempty(m2o) -> m2o?g;
       if
#ifdef BUG_DUP_REPLY
       :: pend -> seen = g; pend = false; res = READY; val = g; other = 0
#else
       :: g > seen && pend -> CHECK(9, res == NONE); seen = g; pend = false; res = READY; val = g; other = 0
#endif
       :: else
       fi; g = 0 }
  :: atomic { upO && res == READY && !reading -> CHECK(1, gen == val); CHECK(7, fdW || upM && fdM || nempty(m2w) && !asked);
       if :: !upM -> g_kept = true :: else fi; reading = true }                     /* get: map by fd */
  :: atomic { upO && res == READY && other == 0 -> other = 1 }
  :: atomic { other == 1 -> other = 2 }
  :: atomic { upO && res == READY && other != 1 && nfull(o2m) && nfull(o2w) -> reading = false; res = NONE;  /* the last reference and view are gone */
       if :: closed -> o2w!val,false :: else -> o2m!val; freed = val fi; val = 0 }
  :: atomic { upO && !upM && !closed ->                               /* verdict on M: drained as far as readable, then closed */
       CLOSE() }
#ifndef BUG_NO_ADOPT_ANSWER
  :: atomic { upO && nempty(w2o) && nfull(o2w) -> w2o?g;
#ifndef BUG_ANSWER_BEFORE_CLOSE
       CLOSE();
#endif
       o2w!g,(res == READY && val == g); g = 0 }
#endif
  od
}
proctype Keeper() {
  byte g; bool k;
end: do
  :: atomic { nempty(m2w) -> m2w?g; rec = g; fdW = (g > 0); g = 0 }
#ifdef BUG_VERDICT_BEFORE_DRAIN
  :: atomic { !upM && !asked ->
#else
  :: atomic { !upM && !asked && empty(m2w) ->          /* first everything M sent, then its death */
#endif
       asked = true; if :: rec && upO -> w2o!rec :: else -> fdW = false; rec = 0 fi }
#ifdef BUG_DROP_AT_DEATH
  :: atomic { !upM && fdW -> fdW = false; rec = 0 }
#endif
  :: atomic { nempty(o2w) -> o2w?g,k; if :: g == rec && !k && asked -> rec = 0; fdW = false :: else fi; g = 0; k = 0 }
  :: atomic { !upO && rec && !upM -> rec = 0; fdW = false }                         /* verdict on O (an unknown incarnation counts as dead) */
  od
}
proctype Fate() {
end: do
  :: atomic { losses < LOSSES && upM && upO && !closed && nfull(m2o) && nfull(o2m) -> losses++; FLUSH(m2o);
       if :: freed && empty(late) -> late!freed :: true fi;                         /* a FREE whose acknowledgement was lost */
       if :: unacked > seen -> m2o!unacked :: unacked == seen && unacked -> m2o!unacked :: else fi }
  :: atomic { deaths < DEATHS && upM -> deaths++; upM = false; todo = false; FLUSH(late); if :: FLUSH(m2o) :: true fi }
  :: atomic { deaths < DEATHS && upO -> deaths++; upO = false; res = NONE; val = 0; pend = false; reading = false; todo = false; FLUSH(m2o); FLUSH(w2o) }
  :: break
  od
}
proctype Audit() { end: atomic { timeout -> CHECK(2, RELEASED); CHECK(3, IDLEO);
#ifdef REACH
  assert(!(g_kept && losses == LOSSES && calls == CALLS))     /* vacuity: must FAIL */
#endif
  } }
init { atomic { run Actor(); run Caller(); run Keeper(); run Fate(); run Audit() } }
ltl settled { <> [] (RELEASED && IDLEO) }
#endif
