#include "head/core/machine/job_terms.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::head {
namespace {

// Keys of a job in a launch's own terms (troupe/_code/travelled.py).
constexpr std::string_view kJobDoor = "door=job", kJobId = "about.id=", kRequestOfKey = "request=";

StatusOr<std::vector<LaunchId>> ParseAfter(std::string_view text) {
  std::vector<LaunchId> after;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::optional<LaunchId> id = LaunchId::FromHex(text.substr(0, comma));
    if (!id || after.size() == kJobAfterMax) {
      return MakeError(ErrorCode::kInvalid,
                       absl::StrCat(kJobAfter, " takes at most ", kJobAfterMax,
                                    " ids of launches, separated by commas"));
    }
    after.push_back(*id);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return after;
}

}  // namespace

std::string JobIdOf(const wire::LaunchSpec& spec) {
  const auto& travelled = spec.environment.travelled;
  if (std::find(travelled.begin(), travelled.end(), kJobDoor) == travelled.end()) return {};
  for (const std::string_view text : travelled) {
    if (text.starts_with(kJobId)) return std::string(text.substr(kJobId.size()));
  }
  return {};
}

bool IsRepeatable(const wire::LaunchSpec& spec) {
  const auto& travelled = spec.environment.travelled;
  return std::any_of(travelled.begin(), travelled.end(), [](std::string_view text) {
    return text == kJobDoor || text.starts_with(kRequestOfKey);
  });
}

StatusOr<JobTerms> ParseJobTerms(const wire::LaunchSpec& spec) {
  JobTerms terms;
  for (const wire::EnvVar& each : spec.environment.env) {
    if (each.name == kJobAfter) {
      StatusOr<std::vector<LaunchId>> after = ParseAfter(each.value);
      if (!after.ok()) return after.status();
      terms.after = *std::move(after);
    } else if (each.name == kJobTokenId) {
      const std::optional<TokenId> token = TokenId::FromHex(each.value);
      if (!token) return MakeError(ErrorCode::kInvalid, absl::StrCat(kJobTokenId, " takes an id"));
      terms.token = *token;
    }
  }
  return terms;
}

}  // namespace troupe::head
