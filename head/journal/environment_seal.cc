#include "head/journal/environment_seal.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/net/digest.h"

namespace troupe::head {
namespace {

using Variables = std::vector<wire::EnvVar>;

Variables* VariablesOf(wire::EventBody& body) {
  if (auto* launch = wire::GetIf<wire::LaunchSubmitted>(&body))
    return &launch->spec.environment.env;
  if (auto* actor = wire::GetIf<wire::ActorCreated>(&body)) return &actor->spec.environment.env;
  if (auto* launch = wire::GetIf<wire::LaunchKept>(&body))
    return &launch->submitted.spec.environment.env;
  if (auto* actor = wire::GetIf<wire::ActorKept>(&body))
    return &actor->created.spec.environment.env;
  return nullptr;
}

void Put(std::string& out, std::string_view text) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(text.size() >> (8 * i)));
  out.append(text);
}

std::optional<std::string> Take(std::string_view& bytes) {
  if (bytes.size() < 4) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  bytes.remove_prefix(4);
  if (bytes.size() < size) return std::nullopt;
  std::string text(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return text;
}

Status Unreadable(const std::string& why) {
  return MakeError(ErrorCode::kInvalid,
                   "the variables in it cannot be read with this cluster's key (ca.key): " + why);
}

}  // namespace

bool EnvironmentSeal::Concerns(const wire::EventBody& body) {
  const Variables* variables =
      VariablesOf(const_cast<wire::EventBody&>(body));  // NOLINT: only looked at
  return variables != nullptr && !variables->empty();
}

Status EnvironmentSeal::Seal(wire::EventBody& body) const {
  Variables* variables = VariablesOf(body);
  if (variables == nullptr || variables->empty()) return absl::OkStatus();
  std::string plain;
  for (const wire::EnvVar& each : *variables) {
    Put(plain, each.name);
    Put(plain, each.value);
  }
  TROUPE_ASSIGN(const std::string sealed, sealer_.Seal(plain));
  wire::EnvVar all;
  all.value = net::Base32(sealed);
  all.sealed = true;
  variables->assign(1, std::move(all));
  return absl::OkStatus();
}

Status EnvironmentSeal::Unseal(wire::EventBody& body) const {
  Variables* variables = VariablesOf(body);
  if (variables == nullptr || variables->size() != 1 || !variables->front().sealed)
    return absl::OkStatus();
  const std::optional<std::string> sealed = net::FromBase32(variables->front().value);
  if (!sealed) return Unreadable("it is no text of that kind");
  const StatusOr<std::string> plain = sealer_.Open(*sealed);
  if (!plain.ok()) return Unreadable(MessageOf(plain.status()));
  Variables opened;
  std::string_view rest = *plain;
  while (!rest.empty()) {
    std::optional<std::string> name = Take(rest);
    std::optional<std::string> value = Take(rest);
    if (!name || !value) return Unreadable("it ends in the middle");
    wire::EnvVar each;
    each.name = *std::move(name);
    each.value = *std::move(value);
    opened.push_back(std::move(each));
  }
  *variables = std::move(opened);
  return absl::OkStatus();
}

}  // namespace troupe::head
