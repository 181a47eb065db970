#include "head/http/acts/job_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "head/core/machine/job_terms.h"
#include "runtime/net/digest.h"

namespace troupe::head {
namespace {

namespace json = boost::json;

constexpr std::size_t kIdCharsMax = 100, kNameCharsMax = 100;
constexpr std::size_t kCommandBytesMax = 64u << 10, kShownCommandBytesMax = 4000;
constexpr std::size_t kMetadataBytesMax = 4u << 10, kPieceBytes = 340;
constexpr std::size_t kVariablesMax = 256;
constexpr double kAmountMax = 1e6, kSecondsMax = 10.0 * 365 * 24 * 3600;
constexpr std::uint64_t kUnit = 10'000;

Status Wrong(std::string_view field, std::string_view wanted) {
  return MakeError(ErrorCode::kInvalid, std::string(field) + " must be " + std::string(wanted));
}

std::string HexOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

bool IsId(std::string_view id) {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !id.empty() && id.size() <= kIdCharsMax && is_alnum(id[0]) &&
         std::all_of(id.begin(), id.end(), [&](char c) {
           return is_alnum(c) || c == '.' || c == '_' || c == '-';
         });
}

std::string TextOf(const json::value& value) {
  return std::string(value.get_string().data(), value.get_string().size());
}

StatusOr<std::vector<std::string>> TextsOf(std::string_view field, const json::value& value) {
  if (!value.is_array()) return Wrong(field, "a list of texts");
  std::vector<std::string> texts;
  for (const json::value& each : value.get_array()) {
    if (!each.is_string()) return Wrong(field, "a list of texts");
    texts.push_back(TextOf(each));
    if (texts.back().find('\0') != std::string::npos)
      return Wrong(field, "texts without null bytes");
  }
  return texts;
}

StatusOr<std::map<std::string, std::string>> PairsOf(std::string_view field,
                                                     const json::value& value) {
  if (!value.is_object()) return Wrong(field, "an object of texts by name");
  std::map<std::string, std::string> pairs;
  for (const auto& [name, text] : value.get_object()) {
    const std::string key(name.data(), name.size());
    if (!text.is_string() || key.empty() || key.find('\0') != std::string::npos ||
        key.find('=') != std::string::npos || TextOf(text).find('\0') != std::string::npos)
      return Wrong(field, "an object of texts by name, without null bytes, and no = in a name");
    pairs[key] = TextOf(text);
  }
  if (pairs.size() > kVariablesMax) return Wrong(field, "an object of at most 256 texts");
  return pairs;
}

StatusOr<double> NumberOf(std::string_view field, const json::value& value, double least,
                          double most) {
  boost::system::error_code error;
  const double number = value.is_number() ? value.to_number<double>(error) : std::nan("");
  if (error || !(number >= least && number <= most)) {
    return Wrong(field, "a number from " + std::to_string(static_cast<std::int64_t>(least)) +
                            " to " + std::to_string(static_cast<std::int64_t>(most)));
  }
  return number;
}

StatusOr<std::int64_t> WholeOf(std::string_view field, const json::value& value, double least,
                               double most) {
  TROUPE_ASSIGN(const double number, NumberOf(field, value, least, most));
  if (number != std::floor(number)) return Wrong(field, "a whole number");
  return static_cast<std::int64_t>(number);
}

Status ReadCommand(const json::value& value, JobAsked* job) {
  if (value.is_string()) {
    job->command = {"bash", "-c", TextOf(value)};
  } else {
    TROUPE_ASSIGN(job->command, TextsOf("command", value));
  }
  std::size_t bytes = 0;
  for (const std::string& each : job->command) bytes += each.size();
  if (job->command.empty() || job->command[0].empty() ||
      job->command.back().find('\0') != std::string::npos)
    return Wrong("command", "a line for bash, or a list of words of which the first is a command");
  if (bytes > kCommandBytesMax) return Wrong("command", "at most 65536 bytes long");
  return absl::OkStatus();
}

Status ReadText(std::string_view field, const json::value& value, std::size_t most,
                std::string* text) {
  if (!value.is_string() || value.get_string().size() > most ||
      TextOf(value).find('\0') != std::string::npos)
    return Wrong(field, "a text of at most " + std::to_string(most) + " bytes");
  *text = TextOf(value);
  return absl::OkStatus();
}

Status ReadAmounts(std::string_view field, const json::value& value, JobAsked* job, bool* known) {
  if (field == "cpus") {
    TROUPE_ASSIGN(job->cpus, NumberOf(field, value, 0, kAmountMax));
  } else if (field == "gpus") {
    TROUPE_ASSIGN(const std::int64_t gpus, WholeOf(field, value, 0, kAmountMax));
    job->gpus = static_cast<std::uint64_t>(gpus);
  } else if (field == "memory_bytes") {
    TROUPE_ASSIGN(const std::int64_t memory, WholeOf(field, value, 0, 1e14));
    job->memory_bytes = static_cast<std::uint64_t>(memory);
  } else if (field == "priority") {
    TROUPE_ASSIGN(job->priority, WholeOf(field, value, -1e6, 1e6));
  } else if (field == "retries") {
    TROUPE_ASSIGN(const std::int64_t retries, WholeOf(field, value, 0, 1000));
    job->retries = static_cast<std::uint64_t>(retries);
  } else if (field == "timeout_s") {
    TROUPE_ASSIGN(job->timeout_s, NumberOf(field, value, 0, kSecondsMax));
  } else if (field == "grace_s") {
    TROUPE_ASSIGN(job->grace_s, NumberOf(field, value, 0, 86400));
  } else {
    *known = false;
  }
  return absl::OkStatus();
}

Status ReadField(std::string_view field, const json::value& value, JobAsked* job) {
  if (field == "command") return ReadCommand(value, job);
  if (field == "name") return ReadText(field, value, kNameCharsMax, &job->name);
  if (field == "working_dir") return ReadText(field, value, 4096, &job->working_dir);
  if (field == "id") {
    TROUPE_TRY(ReadText(field, value, kIdCharsMax, &job->id));
    if (IsId(job->id)) return absl::OkStatus();
    return Wrong(field, "up to 100 letters, digits, dots, dashes and underscores, of which the "
                        "first is a letter or a digit");
  }
  if (field == "after") {
    TROUPE_ASSIGN(job->after, TextsOf(field, value));
    if (job->after.size() > kJobAfterMax) return Wrong(field, "a list of at most 64 ids");
    return absl::OkStatus();
  }
  if (field == "env") {
    TROUPE_ASSIGN(job->env, PairsOf(field, value));
    return absl::OkStatus();
  }
  if (field == "metadata") {
    TROUPE_ASSIGN(job->metadata, PairsOf(field, value));
    if (json::serialize(value).size() > kMetadataBytesMax)
      return Wrong(field, "at most 4096 bytes as JSON");
    return absl::OkStatus();
  }
  bool known = true;
  TROUPE_TRY(ReadAmounts(field, value, job, &known));
  if (known) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalid, "a job has no field " + std::string(field).substr(0, 100));
}

void AddResource(wire::LaunchSpec* spec, const char* name, std::uint64_t ten_thousandths) {
  if (ten_thousandths == 0) return;
  wire::Resource& resource = spec->per_rank.emplace_back();
  resource.name = name;
  resource.ten_thousandths = ten_thousandths;
}

void SetVariable(wire::LaunchSpec* spec, const std::string& name, const std::string& value) {
  wire::EnvVar& variable = spec->environment.env.emplace_back();
  variable.name = name;
  variable.value = value;
}

// In parts that are no longer than a text may be; no part ends within a character.
void AddPieces(std::vector<std::string>* travelled, const std::string& name,
               const std::string& text) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(at + kPieceBytes, text.size());
    while (end < text.size() && end > at + 1 &&
           (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;
    travelled->push_back("about." + name + "." + std::to_string(number++) + "=" +
                         text.substr(at, end - at));
    at = end;
  }
}

std::string ShownCommand(const JobAsked& job) {
  if (job.command.size() == 3 && job.command[0] == "bash" && job.command[1] == "-c")
    return job.command[2];
  std::string line;
  for (const std::string& word : job.command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}();&|<>~#!") == std::string::npos;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
    line += (line.empty() ? "" : " ") + (plain ? word : quoted + "'");
  }
  return line;
}

json::object ObjectOf(const std::map<std::string, std::string>& pairs) {
  json::object object;
  for (const auto& [name, text] : pairs) object[name] = text;
  return object;
}

std::uint64_t MillisOf(double seconds) {
  return static_cast<std::uint64_t>(std::llround(seconds * 1000));
}

}  // namespace

StatusOr<JobAsked> ReadJobAsked(std::string_view body, std::string_view key) {
  boost::system::error_code error;
  json::value parsed = json::parse({body.data(), body.size()}, error);
  if (error || !parsed.is_object())
    return MakeError(ErrorCode::kInvalid, "the body must be a JSON object that describes the job");
  JobAsked job;
  for (const auto& [field, value] : parsed.get_object())
    TROUPE_TRY(ReadField({field.data(), field.size()}, value, &job));
  if (job.command.empty()) return MakeError(ErrorCode::kInvalid, "there is no command to run");
  if (!key.empty()) {
    if (!job.id.empty())
      return MakeError(ErrorCode::kInvalid, "give an id or an Idempotency-Key, one or the other");
    job.id = "job-" + HexOf(net::Sha256(key)).substr(0, 12);
  }
  parsed.get_object().erase("id");
  std::map<std::string, std::string> canonical;
  for (const auto& [field, value] : parsed.get_object())
    canonical[std::string(field.data(), field.size())] = json::serialize(value);
  job.digest = HexOf(net::Sha256(json::serialize(ObjectOf(canonical)))).substr(0, 32);
  return job;
}

wire::SubmitLaunch SubmissionOf(const JobAsked& job, const JobToken& token,
                                const std::vector<LaunchId>& after, const std::string& deleted) {
  wire::SubmitLaunch submit;
  wire::LaunchSpec& spec = submit.spec;
  const std::string& program = job.command[0];
  spec.name = job.name.empty() ? program.substr(program.rfind('/') + 1).substr(0, kNameCharsMax)
                               : job.name;
  spec.function_name = spec.name;
  spec.ranks = 1;
  spec.detached = true;
  spec.attempts_max = static_cast<std::uint32_t>(job.retries + 1);
  spec.priority = static_cast<std::int32_t>(job.priority);
  spec.timeout_ms = MillisOf(job.timeout_s);
  spec.stop_grace_ms = static_cast<std::uint32_t>(MillisOf(job.grace_s));
  AddResource(&spec, "CPU", static_cast<std::uint64_t>(std::llround(job.cpus * kUnit)));
  AddResource(&spec, "GPU", job.gpus * kUnit);
  AddResource(&spec, "memory", job.memory_bytes * kUnit);
  spec.environment.working_directory = job.working_dir;
  for (const auto& [name, value] : job.env) SetVariable(&spec, name, value);
  std::string before;
  for (const LaunchId& id : after) before += (before.empty() ? "" : ",") + id.Hex();
  if (!before.empty()) SetVariable(&spec, kJobAfter, before);
  SetVariable(&spec, kJobTokenId, token.id.Hex());
  std::vector<std::string>& travelled = spec.environment.travelled;
  travelled = {"door=job", "about.id=" + job.id, "about.digest=" + job.digest,
               "about.token=" + token.id.Hex()};
  AddPieces(&travelled, "command", ShownCommand(job).substr(0, kShownCommandBytesMax));
  if (!job.metadata.empty())
    AddPieces(&travelled, "metadata", json::serialize(ObjectOf(job.metadata)));
  const std::string key = "job " + deleted + " " + job.id;
  const std::string digest = net::Sha256(std::string("troupe idempotency key\0", 23) + key);
  submit.request = RequestId::FromHex(HexOf(digest).substr(0, 32)).value_or(RequestId());
  return submit;
}

std::string PayloadOf(const JobAsked& job, const JobToken& token) {
  json::array command;
  for (const std::string& each : job.command) command.emplace_back(each);
  return json::serialize(json::object{{"job", job.id},
                                      {"command", std::move(command)},
                                      {"token", token.text},
                                      {"env", ObjectOf(job.env)}});
}

std::string AboutOf(const std::vector<std::string>& travelled, std::string_view name) {
  const std::string begin = "about." + std::string(name) + "=";
  for (const std::string& each : travelled) {
    if (each.starts_with(begin)) return each.substr(begin.size());
  }
  return "";
}

}  // namespace troupe::head
