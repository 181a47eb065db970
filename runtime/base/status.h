// Errors of this project: absl's Status and StatusOr under our names, with a payload that lets
// Python raise a typed exception.
//
// Use MakeError for every error that a user may read: a code from ErrorCode (it becomes the Python
// exception type), and a text that says what happened, where, why and what to do. Example:
//   return MakeError(ErrorCode::kJoinRefused, absl::StatusCode::kUnauthenticated,
//                    "10.0.0.1:6400 refused the token: it expired 2 h ago\n  get a new one ...");
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

using Status = absl::Status;
template <class T>
using StatusOr = absl::StatusOr<T>;
using StatusCode = absl::StatusCode;

/// Errors that a program may tell apart. Travels over the wire as a number: append only.
enum class ErrorCode : std::uint16_t {
  kNone = 0,
  kInternal = 1,           // our own broken invariant, reported instead of hidden
  kConnection = 2,         // an address nobody listens on, a session that ended
  kJoinRefused = 3,        // wrong, expired or revoked token; another cluster's token
  kNotFound = 4,           // unknown launch, actor, group, name, node
  kInvalid = 5,            // an argument that can never be right
  kInfeasible = 6,         // a placement no state of this cluster can satisfy
  kTimeout = 7,            // a deadline passed; the text names its start and length
  kCancelled = 8,          // a launch or call was cancelled
  kFenced = 9,             // an older epoch, attempt, generation or incarnation
  kTooLarge = 10,          // over a limit; the text names what and the limit
  kActorDied = 11,         // the actor's process is gone; the text names the cause
  kActorUnavailable = 12,  // the actor cannot be reached just now
  kMaybeExecuted = 13,     // the call was sent, its answer will not come
  kNotSent = 14,           // the call never left; safe to repeat
  kLaunchFailed = 15,      // a rank failed; Failure has the particulars
  kWrongCluster = 16,      // the peer belongs to another cluster
  kVersionMismatch = 17,   // Python or protocol versions differ
  kUnknownOutcome = 18,    // the head cannot be reached: neither success nor failure
  kAlreadyExists = 19,     // a name or an id that is taken
};

/// An error with a user-readable text and a code that survives the wire and the Python boundary.
Status MakeError(ErrorCode code, std::string_view text);
/// The code MakeError stored, or the nearest one for a status made elsewhere; kNone for ok.
ErrorCode ErrorCodeOf(const Status& status);
/// The text of a status as std::string (abseil's own view type differs between distributions).
std::string MessageOf(const Status& status);

}  // namespace troupe

#define TROUPE_CONCAT_INNER(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expr` (a Status) is an error.
#define TROUPE_TRY(expr)                           \
  do {                                             \
    ::troupe::Status troupe_status = (expr);       \
    if (!troupe_status.ok()) return troupe_status; \
  } while (false)
/// Returns from the enclosing coroutine when `expr` (a Status) is an error.
#define TROUPE_CO_TRY(expr)                           \
  do {                                                \
    ::troupe::Status troupe_status = (expr);          \
    if (!troupe_status.ok()) co_return troupe_status; \
  } while (false)
/// Assigns the value of `expr` (a StatusOr) to `lhs`, or returns its error; in a coroutine it is
/// TROUPE_CO_ASSIGN.
#define TROUPE_ASSIGN(lhs, expr) \
  TROUPE_ASSIGN_IMPL(TROUPE_CONCAT(troupe_result_, __LINE__), lhs, expr, return)
#define TROUPE_CO_ASSIGN(lhs, expr) \
  TROUPE_ASSIGN_IMPL(TROUPE_CONCAT(troupe_result_, __LINE__), lhs, expr, co_return)
#define TROUPE_ASSIGN_IMPL(result, lhs, expr, give)         \
  auto result = (expr);                                     \
  if (!result.ok()) give ::troupe::Status(result.status()); \
  lhs = std::move(result).value()
