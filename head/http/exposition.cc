#include "head/http/exposition.h"

#include <charconv>
#include <cmath>

namespace troupe::head {
namespace {

constexpr std::string_view kTotal = "_total";

/// Appends a label's value or a description; quotation marks are escaped in the former alone.
void AppendEscaped(std::string_view text, bool quotes, std::string* to) {
  const char* const special = quotes ? "\\\n\"" : "\\\n";
  for (;;) {
    const std::size_t at = text.find_first_of(special);
    to->append(text.substr(0, at));
    if (at == std::string_view::npos) return;
    to->push_back('\\');
    to->push_back(text[at] == '\n' ? 'n' : text[at]);
    text.remove_prefix(at + 1);
  }
}

std::string NumberText(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  char text[64];
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-6 && size < 1e15);
  const auto end = plain ? std::to_chars(text, text + sizeof text, value, std::chars_format::fixed)
                         : std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

/// In OpenMetrics a bound is a number with a point.
std::string BoundText(double bound, Exposition::Format format) {
  std::string text = NumberText(bound);
  const bool whole = text.find_first_of(".eEIN") == std::string::npos;
  if (whole && format == Exposition::Format::kOpenMetrics) text += ".0";
  return text;
}

const char* TypeName(Exposition::Kind kind, Exposition::Format format) {
  switch (kind) {
    case Exposition::Kind::kGauge:
      return "gauge";
    case Exposition::Kind::kCounter:
      return "counter";
    case Exposition::Kind::kHistogram:
      return "histogram";
    case Exposition::Kind::kUnknown:
      break;
  }
  return format == Exposition::Format::kOpenMetrics ? "unknown" : "untyped";
}

}  // namespace

void Exposition::Begin(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  // In OpenMetrics a counter's family has no suffix, its sample has.
  const bool cut = kind == Kind::kCounter && format_ == Format::kOpenMetrics;
  if (cut && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  const std::string family(name);
  text_ += "# HELP " + family + " ";
  AppendEscaped(help, false, &text_);
  text_ += "\n";
  text_ += "# TYPE " + family + " " + TypeName(kind, format_) + "\n";
}

void Exposition::Line(std::string_view suffix, const Labels& labels, double value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [name, label] : labels) {
    text_ += before;
    text_ += name;
    text_ += "=\"";
    AppendEscaped(label, true, &text_);
    text_ += '"';
    before = ',';
  }
  text_ += labels.empty() ? " " : "} ";
  text_ += NumberText(value) + "\n";
}

void Exposition::Add(const Labels& labels, double value) { Line("", labels, value); }

void Exposition::Add(const Labels& labels, const Histogram& histogram) {
  Buckets(labels, Histogram::kBounds, histogram.counts(), histogram.sum_s());
}

void Exposition::Add(const Labels& labels, const std::vector<double>& bounds,
                     const std::vector<std::uint64_t>& counts, double sum) {
  Buckets(labels, bounds, counts, sum);
}

template <class Bounds, class Counts>
void Exposition::Buckets(const Labels& labels, const Bounds& bounds, const Counts& counts,
                         double sum) {
  std::uint64_t count = 0;
  Labels with = labels;
  with.emplace_back("le", "");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    const std::string bound = i == bounds.size() ? "+Inf" : BoundText(bounds[i], format_);
    with.back().second = bound;
    Line("_bucket", with, static_cast<double>(count));
  }
  Line("_sum", labels, sum);
  Line("_count", labels, static_cast<double>(count));
}

std::string Exposition::Finish() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

std::string Exposition::TypeOf(Format format) {
  return format == Format::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Format Exposition::FormatFor(std::string_view accept) {
  return accept.find("application/openmetrics-text") == std::string_view::npos
             ? Format::kPrometheus
             : Format::kOpenMetrics;
}

}  // namespace troupe::head
