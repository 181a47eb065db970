#include "tests/fakes/nccl/settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

namespace troupe::fakes {
namespace {

constexpr std::pair<std::string_view, Place> kPlaces[] = {
    {"init", Place::kInit},     {"connect", Place::kConnect}, {"operation", Place::kOperation},
    {"revoke", Place::kRevoke}, {"abort", Place::kAbort},     {"peer", Place::kPeer}};
constexpr std::pair<std::string_view, Action> kActions[] = {{"hang", Action::kHang},
                                                            {"error", Action::kError},
                                                            {"slow", Action::kSlow},
                                                            {"stuck", Action::kStuck},
                                                            {"unmaps", Action::kUnmaps}};

template <class Pairs>
auto Named(const Pairs& pairs, std::string_view name)
    -> std::optional<std::remove_cvref_t<decltype(pairs[0].second)>> {
  for (const auto& [known, value] : pairs)
    if (known == name) return value;
  return std::nullopt;
}

template <class T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// The part after `sign`, which goes from `text`; empty where there is none.
std::string_view CutAfter(std::string_view& text, char sign) {
  const auto at = text.find(sign);
  if (at == std::string_view::npos) return {};
  const auto rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

std::mutex last_error_mutex;
char last_error[1024];

Settings FromEnvironment() {
  Settings settings;
  std::string error;
  const char* faults = std::getenv("FAKE_NCCL_FAULTS");
  const char* on_violation = std::getenv("FAKE_NCCL_ON_VIOLATION");
  if (faults && !ReadFaults(faults, settings.faults, error)) {
    std::fprintf(stderr, "fake NCCL: FAKE_NCCL_FAULTS: %s\n", error.c_str());
    _exit(2);
  }
  if (on_violation && std::strcmp(on_violation, "as-real") != 0) {
    std::fprintf(stderr, "fake NCCL: FAKE_NCCL_ON_VIOLATION=%s: as-real, or unset\n", on_violation);
    _exit(2);
  }
  settings.ends_on_violation = !on_violation;
  return settings;
}

}  // namespace

FakeFault Settings::At(Place place, std::uint64_t passage) const {
  for (const auto& fault : faults)
    if (fault.place == place && (fault.passage == 0 || fault.passage == passage)) return fault;
  return {place, Action::kNone};
}

bool ReadFaults(std::string_view text, std::vector<FakeFault>& faults, std::string& error) {
  while (!text.empty()) {
    auto one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::string whole(one);
    FakeFault fault{};
    const auto passage = CutAfter(one, '@');
    if (!passage.empty() && !ReadNumber(passage, fault.passage)) {
      error = whole + ": the passage is no number";
      return false;
    }
    auto action = CutAfter(one, '=');
    const auto milliseconds = CutAfter(action, ':');
    if (!milliseconds.empty() && !ReadNumber(milliseconds, fault.milliseconds)) {
      error = whole + ": the time is no number of milliseconds";
      return false;
    }
    const auto known_place = Named(kPlaces, one);
    const auto known_action = Named(kActions, action);
    if (!known_place || !known_action) {
      error = whole +
              ": PLACE=ACTION[:MS][@N], places init connect operation revoke abort peer, actions "
              "hang error slow stuck unmaps";
      return false;
    }
    fault.place = *known_place;
    fault.action = *known_action;
    faults.push_back(fault);
  }
  return true;
}

const Settings& CurrentSettings() {
  static const auto* const settings = new Settings(FromEnvironment());  // threads outlive the exit
  return *settings;
}

void SetLastError(const std::string& text) {
  std::lock_guard lock(last_error_mutex);
  std::snprintf(last_error, sizeof last_error, "%s", text.c_str());
}

const char* LastError() { return last_error; }

void FatalViolation(std::string_view rule, const std::string& what) {
  std::fprintf(stderr, "fake NCCL: rule %.*s is broken: %s\n", static_cast<int>(rule.size()),
               rule.data(), what.c_str());
  std::fflush(stderr);
  std::abort();
}

void Violation(std::string_view rule, const std::string& what) {
  if (CurrentSettings().ends_on_violation) FatalViolation(rule, what);
  SetLastError(what);
}

}  // namespace troupe::fakes
