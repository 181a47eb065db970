#include "head/http/program_text.h"

#include <string>
#include <string_view>

#include "head/http/message.h"

namespace troupe::head {
namespace {

constexpr std::string_view kOwnPrefix = "troupe_", kTotal = "_total";
constexpr char kNoHelp[] = "A metric of a program, which says no more of it.";

std::string NameFor(const std::string& name, wire::MetricKind kind, const char* prefix) {
  std::string shown = name.starts_with(kOwnPrefix) ? name : prefix + name;
  if (kind == wire::MetricKind::kCounter && !shown.ends_with(kTotal)) shown += kTotal;
  return shown;
}

void AddFamily(Exposition& text, const std::string& name, const ProgramMetrics::Family& family) {
  const bool histogram = family.kind == wire::MetricKind::kHistogram;
  text.Begin(name,
             histogram                                   ? FamilyKind::kHistogram
             : family.kind == wire::MetricKind::kCounter ? FamilyKind::kCounter
                                                         : FamilyKind::kGauge,
             family.help.empty() ? kNoHelp : ValidUtf8(family.help));
  for (const auto& [labels, series] : family.series) {
    std::vector<std::string> values;
    values.reserve(labels.size());
    Exposition::Labels shown;
    for (const auto& [key, value] : labels) {
      values.push_back(ValidUtf8(value));
      shown.emplace_back(key, values.back());
    }
    if (histogram) {
      text.Add(shown, family.bounds, series.counts, series.value);
    } else {
      text.Add(shown, series.value);
    }
  }
}

}  // namespace

void AddProgramMetrics(Exposition& text, const ProgramMetrics::Families& families) {
  for (const auto& [name, family] : families) {
    if (!family.series.empty()) AddFamily(text, NameFor(name, family.kind, "troupe_app_"), family);
  }
}

void AddProgramMetricsAsRay(Exposition& text, const ProgramMetrics::Families& families) {
  for (const auto& [name, family] : families) {
    if (family.series.empty() || name.starts_with(kOwnPrefix)) continue;
    AddFamily(text, NameFor(name, family.kind, "ray_"), family);
  }
}

}  // namespace troupe::head
