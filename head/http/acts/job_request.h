// A job as it is asked for by POST /api/v1/jobs: checked, and as the launch that it becomes.
//
// Pure. What a launch says of itself as a job is that of troupe/job_submission/_jobs.py; the
// payload is JSON, which troupe/_code/program.py (job_of_json) reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

struct JobAsked {
  std::vector<std::string> command;
  std::string id;          // "": a new one
  std::string name;
  double cpus = 1;
  std::uint64_t gpus = 0;
  std::uint64_t memory_bytes = 0;
  std::int64_t priority = 0;
  std::uint64_t retries = 0;
  double timeout_s = 0;  // 0: none
  double grace_s = 30;
  std::vector<std::string> after;
  std::map<std::string, std::string> env;
  std::string working_dir;
  std::map<std::string, std::string> metadata;
  std::string digest;  // digest of the common part of bodies that ask for the same job
};

/// kInvalid: the first thing in it that cannot be meant. `key` is the request's idempotency key, by
/// which the job's id is made.
StatusOr<JobAsked> ReadJobAsked(std::string_view body, std::string_view key);

struct JobToken {
  TokenId id;
  std::string text;
};
/// `deleted`: the launch of the latest deleted job with that id; "": there is none.
wire::SubmitLaunch SubmissionOf(const JobAsked& job, const JobToken& token,
                                const std::vector<LaunchId>& after, const std::string& deleted);
std::string PayloadOf(const JobAsked& job, const JobToken& token);

/// The text that follows `about.NAME=` in what a launch says of itself; "": there is none.
std::string AboutOf(const std::vector<std::string>& travelled, std::string_view name);

}  // namespace troupe::head
