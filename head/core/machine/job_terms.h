// Terms of a job: what a launch asks of the head because it runs a program that drives the whole
// cluster. They travel as variables of its environment, so a journal of an older head has none.
//
//   TROUPE_JOB_AFTER     ids of launches that must have succeeded before this one starts, by commas
//   TROUPE_JOB_TOKEN_ID  the token by which its processes come as clients
//
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

inline constexpr char kJobAfter[] = "TROUPE_JOB_AFTER";
inline constexpr char kJobTokenId[] = "TROUPE_JOB_TOKEN_ID";
inline constexpr std::size_t kJobAfterMax = 64;

struct JobTerms {
  std::vector<LaunchId> after;
  TokenId token;  // nil: none
};

/// The id of the job that a launch says it is (troupe/_code/travelled.py); empty: it is none.
std::string JobIdOf(const wire::LaunchSpec& spec);
/// Returns true if the submission may be repeated at any time, and means the same launch: one with
/// an idempotency key, and a job.
bool IsRepeatable(const wire::LaunchSpec& spec);

/// kInvalid: a variable that is no list of at most kJobAfterMax ids, or no id.
StatusOr<JobTerms> ParseJobTerms(const wire::LaunchSpec& spec);

}  // namespace troupe::head
