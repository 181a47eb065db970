#include "head/core/machine/program_metrics.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe::head {
namespace {

using wire::MetricKind;

// The runtime's own, of processes that are not the head: sweeps.
constexpr std::string_view kOwnPrefix = "troupe_";
constexpr std::string_view kOwn[] = {"troupe_sweep_trials", "troupe_sweep_reports_total",
                                     "troupe_sweep_decision_seconds"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool IsName(std::string_view name, bool colons) {
  if (name.empty() || name.size() > ProgramMetrics::kTextMax) return false;
  if (name.front() >= '0' && name.front() <= '9') return false;
  return std::all_of(name.begin(), name.end(), [colons](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || (colons && c == ':');
  });
}

/// The names of samples that a family may have in one format or the other.
std::vector<std::string> SampleNames(const std::string& name, MetricKind kind) {
  std::vector<std::string> names = {name};
  if (kind == MetricKind::kCounter) names.insert(names.end(), {name + "_total", name + "_created"});
  if (kind == MetricKind::kHistogram) {
    names.insert(names.end(),
                 {name + "_bucket", name + "_sum", name + "_count", name + "_created"});
  }
  return names;
}

std::string ObjectionTo(const wire::MetricFamily& reported) {
  const std::string& name = reported.name;
  if (!IsName(name, true)) return "'" + name.substr(0, 100) + "' is no name of a metric";
  if (name.starts_with(kOwnPrefix) &&
      std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn)) {
    return "the metric " + name + ": names that begin with troupe_ are the runtime's own";
  }
  const std::vector<double>& bounds = reported.bounds;
  if ((reported.kind == MetricKind::kHistogram) == bounds.empty() ||
      bounds.size() > ProgramMetrics::kBoundsMax ||
      std::adjacent_find(bounds.begin(), bounds.end(),
                         [](double a, double b) { return !(a < b); }) != bounds.end()) {
    return "the metric " + name + ": a histogram has 1 to 128 boundaries in rising order";
  }
  return "";
}

std::string ObjectionTo(const wire::MetricFamily& family, const wire::MetricSeries& series) {
  const std::string about = "the metric " + family.name + ": ";
  if (series.labels.size() > ProgramMetrics::kLabelsMax) return about + "more than 32 tags";
  for (std::size_t i = 0; i < series.labels.size(); ++i) {
    const wire::Label& label = series.labels[i];
    if (!IsName(label.key, false) || label.key.starts_with("__") || label.key == "le")
      return about + "'" + label.key.substr(0, 100) + "' is no name of a tag";
    if (label.value.size() > ProgramMetrics::kTextMax)
      return about + "a value of the tag " + label.key + " is longer than 1,024 bytes";
    if (i > 0 && !(series.labels[i - 1].key < label.key))
      return about + "its tags are not in the order of their names";
  }
  const bool histogram = family.kind == MetricKind::kHistogram;
  if (histogram && series.counts.size() != family.bounds.size() + 1)
    return about + "a histogram has one count more than boundaries";
  if (family.kind == MetricKind::kCounter && !(series.value >= 0))
    return about + "a counter only grows";
  return "";
}

}  // namespace

bool ProgramMetrics::IsRepeat(const RequestId& source, std::uint64_t round) {
  const auto [known, is_new] = rounds_.emplace(source, 0);
  if (is_new) sources_.push_back(source);
  if (!is_new && round <= known->second) return true;
  known->second = round;
  if (sources_.size() > kSourcesMax) {
    rounds_.erase(sources_.front());
    sources_.pop_front();
  }
  return false;
}

std::vector<std::string> ProgramMetrics::Take(const wire::ReportMetrics& report, Instant now) {
  if (IsRepeat(report.source, report.round)) return {};
  std::size_t reported = 0;
  for (const wire::MetricFamily& family : report.families) reported += family.series.size();
  if (reported > kSeriesPerReportMax) {
    return {"a report has more than " + std::to_string(kSeriesPerReportMax) + " series"};
  }
  Expire(now);
  std::vector<std::string> refused;
  for (const wire::MetricFamily& family : report.families) {
    std::string why = TakeFamily(family, now);
    if (!why.empty()) refused.push_back(std::move(why));
  }
  return refused;
}

std::string ProgramMetrics::FindFamily(const wire::MetricFamily& reported, Family** family) {
  const auto known = families_.find(reported.name);
  if (known != families_.end()) {
    *family = &known->second;
    if (known->second.kind == reported.kind && known->second.bounds == reported.bounds) return "";
    return "the metric " + reported.name + " is a " + wire::NameOf(known->second.kind) +
           " already, by another process or the same one: its kind and boundaries must be the "
           "same everywhere";
  }
  if (families_.size() >= kFamiliesMax) {
    return "the metric " + reported.name + ": the cluster has " + std::to_string(kFamiliesMax) +
           " metrics of programs, which is all it may";
  }
  const std::vector<std::string> names = SampleNames(reported.name, reported.kind);
  for (const std::string& name : names) {
    if (names_.count(name) > 0) {
      return "the metric " + reported.name + ": another metric of the cluster has a sample " + name;
    }
  }
  names_.insert(names.begin(), names.end());
  *family = &families_[reported.name];
  (*family)->kind = reported.kind;
  (*family)->bounds = reported.bounds;
  (*family)->help = reported.help.substr(0, kTextMax);
  return "";
}

std::string ProgramMetrics::TakeFamily(const wire::MetricFamily& reported, Instant now) {
  std::string why = ObjectionTo(reported);
  if (!why.empty()) return why;
  Family* family = nullptr;
  why = FindFamily(reported, &family);
  if (!why.empty()) return why;
  for (const wire::MetricSeries& each : reported.series) {
    std::string objection = ObjectionTo(reported, each);
    if (!objection.empty()) {
      why = std::move(objection);
      continue;
    }
    Labels labels;
    for (const wire::Label& label : each.labels) labels.emplace_back(label.key, label.value);
    auto series = family->series.find(labels);
    if (series == family->series.end()) {
      if (series_ >= kSeriesMax) {
        why = "the metric " + reported.name + ": the metrics of the cluster's programs have " +
              std::to_string(kSeriesMax) +
              " series, which is all they may: which tag has a new value each time?";
        continue;
      }
      series = family->series.emplace(std::move(labels), Series()).first;
      ++series_;
    }
    Series& to = series->second;
    to.reported = now;
    if (reported.kind == MetricKind::kGauge) {
      to.value = each.value;
      continue;
    }
    to.value += each.value;
    to.counts.resize(each.counts.size());
    for (std::size_t i = 0; i < each.counts.size(); ++i) to.counts[i] += each.counts[i];
  }
  return why;
}

void ProgramMetrics::Expire(Instant now) {
  if (now < expired_ + kGaugeLife / 4) return;
  expired_ = now;
  for (auto& [name, family] : families_) {
    if (family.kind != MetricKind::kGauge) continue;
    series_ -= std::erase_if(
        family.series, [now](const auto& each) { return each.second.reported + kGaugeLife < now; });
  }
}

}  // namespace troupe::head
