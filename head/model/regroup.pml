/* The group directory (rules R1-R6, RP1-RP3) and what the marker says of a launch that lost ranks.  Spin 6.5 model.
 * Three ranks, of which LEAST must not have died. A rank may return, raise, die, or stand still at any moment, also while the group is formed anew.
 * Actors: 3 ranks, 3 workers that report ends and who has come (again after each start of the head), the head (one event-loop turn each:
 *         atomic) with its pushes and its limit, a crasher of the head.
 * -DREPLACE: other processes take the places of those that died, where there is room; their node starts them once it hears of it.
 * Mutants (-D...): BUG_STALE_JOIN BUG_VOLATILE_FORMED BUG_NO_MINIMUM BUG_RAISED_IS_A_DEATH (safety), BUG_NO_LIMIT BUG_RETURNED_AWAITED
 * (liveness); of REPLACE: BUG_STALE_LIFE BUG_EMPTY_PLACE (safety), BUG_NO_ROOM_LIMIT (liveness).  Every mutant must be REJECTED; the plain model must pass.  */
#define N 3
#ifndef LEAST
#define LEAST 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#ifndef KILLS
#define KILLS 3              /* deaths that are no doing of the head's */
#endif

mtype = { NONE, RETURNED, DIED, RAISED, HANGS };   /* how a rank ended, and what the head knows of it */
mtype = { OPEN, SUCCEEDED, FAILED };

/* ---- the ranks: what is so ---- */
mtype so[N] = NONE;
byte told[N] = 1;            /* the epoch of the group that it was told of */
byte came[N] = 1;            /* the one that it has come to */
byte within[N] = 1;              /* the one of the group that it is in */
/* ---- durable ---- */
mtype d_end[N] = NONE;       /* RankFinished */
byte deaths = 0;             /* so many of them: the group's epoch is one more (R2) */
byte d_formed = 1;           /* GroupReformed, */
byte d_members = 7;          /* and of whom */
mtype d_marker = OPEN;
#ifdef REPLACE
byte d_life[N] = 0;          /* RankReplaced: the epoch of the group that its present process is to come to first */
byte life[N] = 0;            /* what is so on its node */
bool room = true;            /* whether a place is found */
#define DEATHS_MAX 3         /* RP3 */
#define EMPTY (d_end[0] == DIED || d_end[1] == DIED || d_end[2] == DIED)
#define LEFT (N - ((d_end[0] == DIED -> 1 : 0) + (d_end[1] == DIED -> 1 : 0) + (d_end[2] == DIED -> 1 : 0)))
#define TOO_FEW (LEFT < LEAST || deaths > DEATHS_MAX)
#else
#define EMPTY false
#define TOO_FEW (N - deaths < LEAST)
#endif
/* ---- volatile head state ---- */
bool up = true;
byte joined = 0;             /* who has come to the present epoch */
/* ---- ghosts ---- */
byte g_members[5] = 0;       /* by epoch: of whom it was formed */
byte crashes = 0, kills = 0;
byte g_died = 0;             /* processes that have died */

#define EPOCH (1 + deaths)
#define SOME_RAISED (d_end[0] == RAISED || d_end[1] == RAISED || d_end[2] == RAISED)
#define ALL_ENDED (d_end[0] != NONE && d_end[1] != NONE && d_end[2] != NONE)
#define BIT(i) (1 << (i))
#define HAS(mask, i) ((mask >> (i)) & 1)
#ifdef BUG_RETURNED_AWAITED
#define AWAITED(i) (d_end[i] != DIED)
#else
#define AWAITED(i) (d_end[i] == NONE)
#endif
#define ALL_CAME ((!AWAITED(0) || HAS(joined, 0)) && (!AWAITED(1) || HAS(joined, 1)) && (!AWAITED(2) || HAS(joined, 2)))
#define RUNNING ((d_end[0] == NONE -> 1 : 0) + (d_end[1] == NONE -> 2 : 0) + (d_end[2] == NONE -> 4 : 0))
#define CAME_IF(i) (!HAS(d_members, i) || came[i] == d_formed)

inline FORM() {                                     /* R3 */
  if
#ifdef BUG_EMPTY_PLACE
  :: d_marker == OPEN && EPOCH > d_formed && RUNNING != 0 && ALL_CAME ->
#else
  :: d_marker == OPEN && EPOCH > d_formed && RUNNING != 0 && ALL_CAME && !EMPTY ->
#endif
       assert(!EMPTY);                                          /* RP2 */
       d_formed = EPOCH; d_members = RUNNING; joined = 0;
       assert(CAME_IF(0) && CAME_IF(1) && CAME_IF(2));          /* nobody is in it who has not come */
       assert(g_members[d_formed] == 0 || g_members[d_formed] == d_members);   /* one group for an epoch */
       g_members[d_formed] = d_members
  :: else -> skip
  fi
}

inline CONSIDER() {                                 /* after every end of a rank */
  if
  :: d_marker != OPEN -> skip
#ifdef BUG_RAISED_IS_A_DEATH
  :: d_marker == OPEN && N - deaths < LEAST -> d_marker = FAILED
  :: d_marker == OPEN && !(N - deaths < LEAST) && ALL_ENDED -> d_marker = SUCCEEDED; assert(!SOME_RAISED)
  :: d_marker == OPEN && !(N - deaths < LEAST) && !ALL_ENDED -> FORM()
#elif defined(BUG_NO_MINIMUM)
  :: d_marker == OPEN && SOME_RAISED -> d_marker = FAILED
  :: d_marker == OPEN && !SOME_RAISED && ALL_ENDED -> d_marker = SUCCEEDED; assert(N - deaths >= LEAST)
  :: d_marker == OPEN && !SOME_RAISED && !ALL_ENDED -> FORM()
#else
  :: d_marker == OPEN && (SOME_RAISED || TOO_FEW) -> d_marker = FAILED           /* R1 */
  :: d_marker == OPEN && !(SOME_RAISED || TOO_FEW) && ALL_ENDED && !EMPTY -> d_marker = SUCCEEDED;
       assert(!SOME_RAISED && !TOO_FEW)                                                  /* R5 */
  :: d_marker == OPEN && !(SOME_RAISED || TOO_FEW) && !(ALL_ENDED && !EMPTY) -> FORM()
#endif
  fi
}

#ifdef REPLACE
#define DEAD skip                                                               /* another process goes on here */
#else
#define DEAD break
#endif
proctype Rank(byte i) {
  do
  :: atomic { so[i] == NONE && told[i] == within[i] -> so[i] = RETURNED; break }    /* in the re-form it waits */
  :: atomic { so[i] == NONE && told[i] == within[i] -> so[i] = RAISED; break }
  :: atomic { so[i] == NONE && kills < KILLS -> kills++; g_died++; so[i] = DIED; DEAD }
  :: atomic { so[i] == NONE && came[i] <= within[i] -> so[i] = HANGS; DEAD }
  :: atomic { so[i] == NONE && told[i] > came[i] -> came[i] = told[i] }
#ifdef REPLACE
  :: atomic { d_marker != OPEN -> break }
#else
  :: atomic { so[i] == DIED -> break }                                          /* by the limit */
#endif
  od
}

#if defined(REPLACE) && !defined(BUG_STALE_LIFE)
#define OF_THIS_LIFE(i) (life[i] == d_life[i])
#else
#define OF_THIS_LIFE(i) true
#endif
proctype Worker(byte i) {
end: do
  :: atomic { up && d_marker == OPEN && so[i] != NONE && so[i] != HANGS && d_end[i] == NONE && OF_THIS_LIFE(i) ->
       d_end[i] = so[i];
       if :: so[i] == DIED -> deaths++; assert(deaths <= g_died) :: else -> skip fi;           /* RP1 */
#ifndef BUG_STALE_JOIN
       if :: so[i] == DIED -> joined = 0 :: else -> skip fi;
#endif
       CONSIDER() }
#ifdef BUG_STALE_JOIN
  :: atomic { up && d_marker == OPEN && d_end[i] == NONE && so[i] == NONE && !HAS(joined, i) && came[i] > 1 && EPOCH > d_formed ->
#else
  :: atomic { up && d_marker == OPEN && d_end[i] == NONE && so[i] == NONE && !HAS(joined, i) && came[i] == EPOCH && EPOCH > d_formed ->
#endif
       joined = joined | BIT(i); FORM() }
  /* the head's pushes, which are said again until they are heard */
  :: atomic { up && d_marker == OPEN && d_end[i] == NONE && told[i] < EPOCH -> told[i] = EPOCH }
  :: atomic { up && d_marker == OPEN && d_end[i] == NONE && so[i] == NONE && d_formed == EPOCH && within[i] < d_formed && HAS(d_members, i) ->
       assert(came[i] == d_formed); within[i] = d_formed }
#ifndef BUG_NO_LIMIT
  /* R4: who does not come is a death, and is killed. */
  :: atomic { up && d_marker == OPEN && EPOCH > d_formed && d_end[i] == NONE && so[i] == HANGS && !HAS(joined, i) ->
       so[i] = DIED; g_died++; d_end[i] = DIED; deaths++; joined = 0; CONSIDER() }
#endif
#ifdef REPLACE
  :: atomic { up && d_marker == OPEN && d_end[i] == DIED && room -> d_end[i] = NONE; d_life[i] = EPOCH }
  :: atomic { up && d_marker == OPEN && life[i] < d_life[i] ->
       life[i] = d_life[i]; so[i] = NONE; told[i] = EPOCH; came[i] = 1; within[i] = 1 }
#ifndef BUG_NO_ROOM_LIMIT
  :: atomic { up && d_marker == OPEN && d_end[i] == DIED && !room -> d_marker = FAILED }
#endif
#endif
  od
}

proctype Crasher() {
  do
  :: atomic { up && crashes < CRASHES -> crashes++; up = false; joined = 0;
#ifdef BUG_VOLATILE_FORMED
       d_formed = 1
#endif
     }
     atomic { up = true; CONSIDER() }
  :: break
  od
}

byte tick = 0; proctype Tick() { end: do :: tick = 1 - tick od }       /* keeps every run infinite, so fairness is meaningful */

init { atomic {
#ifdef REPLACE
  if :: room = true :: room = false fi;
#endif
  run Tick(); run Rank(0); run Rank(1); run Rank(2); run Worker(0); run Worker(1); run Worker(2); run Crasher() } }

/* A death ends the launch, or its ranks are in a group again. */
ltl all_go_on { [] (deaths > 0 -> <> (d_marker != OPEN || d_formed == EPOCH)) }
