// Method: bodies of POST /api/v1/jobs by hand, good ones and those that cannot be meant.
#include "head/http/acts/job_request.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::head {
namespace {

JobAsked Read(const std::string& body, const std::string& key = "") {
  const StatusOr<JobAsked> job = ReadJobAsked(body, key);
  EXPECT_TRUE(job.ok()) << MessageOf(job.status());
  return job.ok() ? *job : JobAsked();
}

TEST(JobRequest, BecomesALaunchThatSaysItIsAJob) {
  const JobAsked job = Read(R"({"command": ["python", "a b.py"], "id": "night-1", "cpus": 0.5,
      "gpus": 2, "memory_bytes": 1000, "retries": 3, "timeout_s": 1.5, "grace_s": 0,
      "priority": -2, "env": {"A": "1"}, "metadata": {"team": "blue"}, "working_dir": "/w"})");
  const JobToken token{TokenId(1, 2), "secret"};
  const wire::SubmitLaunch submit = SubmissionOf(job, token, {LaunchId(3, 4)}, "");
  const wire::LaunchSpec& spec = submit.spec;
  EXPECT_EQ(spec.name, "python");
  EXPECT_EQ(spec.ranks, 1u);
  EXPECT_TRUE(spec.detached);
  EXPECT_EQ(spec.attempts_max, 4u);
  EXPECT_EQ(spec.timeout_ms, 1500u);
  EXPECT_EQ(spec.stop_grace_ms, 0u);
  EXPECT_EQ(spec.priority, -2);
  ASSERT_EQ(spec.per_rank.size(), 3u);
  EXPECT_EQ(spec.per_rank[0].ten_thousandths, 5000u);
  EXPECT_EQ(spec.per_rank[1].ten_thousandths, 20000u);
  EXPECT_EQ(spec.environment.working_directory, "/w");
  EXPECT_EQ(AboutOf(spec.environment.travelled, "id"), "night-1");
  EXPECT_EQ(AboutOf(spec.environment.travelled, "command.0"), "python 'a b.py'");
  EXPECT_EQ(AboutOf(spec.environment.travelled, "metadata.0"), R"({"team":"blue"})");
  EXPECT_EQ(AboutOf(spec.environment.travelled, "token"), token.id.Hex());
  EXPECT_FALSE(submit.request.IsNil());
  for (const std::string& each : spec.environment.travelled)
    EXPECT_EQ(each.find("secret"), std::string::npos);
  EXPECT_EQ(PayloadOf(job, token),
            R"({"job":"night-1","command":["python","a b.py"],"token":"secret","env":{"A":"1"}})");
}

TEST(JobRequest, TheSameContentHasTheSameDigestWhateverItsOrderAndId) {
  const std::string digest = Read(R"({"command": "true", "cpus": 2, "id": "a"})").digest;
  EXPECT_EQ(Read(R"({"id": "b", "cpus": 2, "command": "true"})").digest, digest);
  EXPECT_NE(Read(R"({"command": "true", "cpus": 3})").digest, digest);
  const JobAsked one = Read(R"({"command": "true"})", "key");
  EXPECT_EQ(Read(R"({"command": "true"})", "key").id, one.id);
  EXPECT_NE(Read(R"({"command": "true"})", "other").id, one.id);
  EXPECT_EQ(one.command, (std::vector<std::string>{"bash", "-c", "true"}));
}

TEST(JobRequest, LongTextsAreInPartsThatEndBetweenCharacters) {
  std::string line;
  for (int i = 0; i < 400; ++i) line += "\xE2\x82\xAC";
  const JobAsked job = Read("{\"command\": \"" + line + "\"}");
  std::string whole;
  const wire::SubmitLaunch submit = SubmissionOf(job, {}, {}, "");
  for (std::size_t i = 0; i < 5; ++i) {
    const std::string part =
        AboutOf(submit.spec.environment.travelled, "command." + std::to_string(i));
    EXPECT_EQ(part.size() % 3, 0u);
    whole += part;
  }
  EXPECT_EQ(whole, line);
}

TEST(JobRequest, WhatCannotBeMeantIsRefused) {
  const std::string deep(100, '[');
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{"), deep, std::string("{}"),
        std::string(R"({"command": []})"), std::string(R"({"command": [""]})"),
        std::string(R"({"command": 7})"), std::string(R"({"command": ["a", 1]})"),
        std::string(R"({"command": "a\u0000b"})"), std::string(R"({"command": "a", "id": "a b"})"),
        std::string(R"({"command": "a", "id": ""})"),
        std::string(R"({"command": "a", "cpus": -1})"),
        std::string(R"({"command": "a", "gpus": 0.5})"),
        std::string(R"({"command": "a", "cpus": "1"})"),
        std::string(R"({"command": "a", "retries": 1e9})"),
        std::string(R"({"command": "a", "env": {"A=B": "1"}})"),
        std::string(R"({"command": "a", "env": ["A"]})"),
        std::string(R"({"command": "a", "after": "b"})"),
        std::string(R"({"command": "a", "colour": "red"})"),
        "{\"command\": \"" + std::string(70000, 'x') + "\"}",
        R"({"command": "a", "metadata": {"a": ")" + std::string(5000, 'x') + "\"}}"}) {
    const StatusOr<JobAsked> job = ReadJobAsked(body, "");
    EXPECT_EQ(ErrorCodeOf(job.status()), ErrorCode::kInvalid) << body.substr(0, 80);
  }
  EXPECT_EQ(ErrorCodeOf(ReadJobAsked(R"({"command": "a", "id": "b"})", "key").status()),
            ErrorCode::kInvalid);
}

}  // namespace
}  // namespace troupe::head
