/* The verdict on an epoch of which a rank has failed (E1, E2, E4 of head/core/ending.h; W9 of the worker).  Spin 6.5 model.
 * Two ranks, each on a node of its own; in rank 0's way of failing, the head may hear of the symptom first.
 * Actors: 2 ranks, 2 workers that report ends (repeated until they are durable) and answer the head's question,
 *         the head (one event-loop turn each: atomic), a driver's Complete, a crasher of the head.
 * Mutants (-D...): BUG_FIRST_WORD BUG_EARLY_ANSWER BUG_SUCCESS (safety), BUG_FORGOTTEN (liveness).  Every mutant must be
 * REJECTED; the plain model must pass.  */
#ifndef CRASHES
#define CRASHES 2
#endif

mtype = { NONE, RETURNED, KILLED, SYMPTOM };   /* how a rank ended; and what the head knows of it */
mtype = { OPEN, SUCCEEDED, FAILED };

/* ---- the ranks: what is so ---- */
mtype ended[2] = NONE;
bool  hangs[2] = false;      /* it goes on, and takes part in nothing */
/* ---- durable ---- */
mtype d_done[2] = NONE;      /* RankFinished */
mtype d_marker = OPEN;
byte  d_blame = 2;
/* ---- volatile head state ---- */
bool  up = true, asking = false;
bool  awaited[2] = false;
byte  crashes = 0;

#define FAILING (d_done[0] == KILLED || d_done[1] == KILLED || d_done[0] == SYMPTOM || d_done[1] == SYMPTOM)
#define DEAD(i) (ended[i] == KILLED)

inline CLOSE() {
  if :: d_done[0] == KILLED -> d_blame = 0
     :: else -> if :: d_done[1] == KILLED -> d_blame = 1
                   :: else -> if :: d_done[0] == SYMPTOM && d_done[1] != RETURNED -> d_blame = 0 :: else -> d_blame = (d_done[1] == SYMPTOM && d_done[0] == RETURNED -> 0 : 1) fi
                fi
  fi;
  /* E2: a rank that was killed before the other's collective failed is named, whoever was heard of first. */
  assert(!(ended[0] == SYMPTOM && DEAD(1)) || d_blame == 1);
  assert(!(ended[1] == SYMPTOM && DEAD(0)) || d_blame == 0);
  /* So is one that had returned before it. */
  assert(!(ended[0] == SYMPTOM && ended[1] == RETURNED) || d_blame == 1);
  assert(!(ended[1] == SYMPTOM && ended[0] == RETURNED) || d_blame == 0);
  assert(d_marker == OPEN);
  d_marker = FAILED
}

inline CONSIDER() {                            /* after every word, and after a start */
  if
  :: d_marker != OPEN || !FAILING -> skip
#ifdef BUG_FIRST_WORD
  :: d_marker == OPEN && FAILING -> CLOSE()
#else
  :: d_marker == OPEN && (d_done[0] == KILLED || d_done[1] == KILLED) -> CLOSE()
  :: d_marker == OPEN && FAILING && !(d_done[0] == KILLED || d_done[1] == KILLED) ->
       if :: !asking -> asking = true; awaited[0] = true; awaited[1] = true
          :: asking && !awaited[0] && !awaited[1] -> CLOSE()
          :: else -> skip
       fi
#endif
  fi
}

proctype Rank(byte i) {
  if
  :: atomic { ended[1 - i] != KILLED -> ended[i] = KILLED }            /* its sockets close now */
  :: atomic { ended[i] = RETURNED }
  :: hangs[i] = true
  :: atomic { ended[1 - i] == KILLED || ended[1 - i] == RETURNED || hangs[1 - i] -> ended[i] = SYMPTOM }   /* its collective fails after it */
  fi
}

proctype Worker(byte i) {
end: do
  :: atomic { up && d_marker == OPEN && ended[i] != NONE && d_done[i] == NONE -> d_done[i] = ended[i]; CONSIDER() }
#ifdef BUG_EARLY_ANSWER
  :: atomic { up && d_marker == OPEN && asking && awaited[i] -> awaited[i] = false; CONSIDER() }
#else
  /* W9: what has begun to exit is told before the answer. */
  :: atomic { up && d_marker == OPEN && asking && awaited[i] && (ended[i] == NONE || d_done[i] != NONE) ->
       awaited[i] = false; CONSIDER() }
#endif
  od
}

proctype Completing() {                        /* all that counts has succeeded: the last value, or a driver's Complete */
end: do
#ifdef BUG_SUCCESS
  :: atomic { up && d_marker == OPEN && (d_done[0] == RETURNED || d_done[1] == RETURNED) ->
#else
  :: atomic { up && d_marker == OPEN && !FAILING && (d_done[0] == RETURNED || d_done[1] == RETURNED) ->
#endif
       assert(!FAILING); d_marker = SUCCEEDED }                        /* E1 */
  od
}

proctype Crasher() {
  do
  :: atomic { up && crashes < CRASHES -> crashes++; up = false }
     atomic { asking = false; awaited[0] = false; awaited[1] = false; up = true;
#ifndef BUG_FORGOTTEN
              CONSIDER()                       /* E4: it asks anew */
#endif
            }
  :: break
  od
}

byte tick = 0; proctype Tick() { end: do :: tick = 1 - tick od }       /* keeps every run infinite, so fairness is meaningful */

init { atomic { run Tick(); run Rank(0); run Rank(1); run Worker(0); run Worker(1); run Completing(); run Crasher() } }

ltl a_verdict_comes { [] (FAILING -> <> (d_marker != OPEN)) }
