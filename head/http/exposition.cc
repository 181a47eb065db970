#include "head/http/exposition.h"

#include <charconv>
#include <cmath>

namespace troupe::head {
namespace {

constexpr std::string_view kTotal = "_total";

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
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

}  // namespace

void Exposition::Begin(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  // In OpenMetrics a counter's family has no suffix, its sample has.
  const bool cut = kind == Kind::kCounter && format_ == Format::kOpenMetrics;
  if (cut && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  const std::string family(name);
  const char* type = kind == Kind::kGauge     ? "gauge"
                     : kind == Kind::kCounter ? "counter"
                                              : "histogram";
  text_ += "# HELP " + family + " " + std::string(help) + "\n";
  text_ += "# TYPE " + family + " " + type + "\n";
}

void Exposition::Line(std::string_view suffix, const Labels& labels, double value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [name, label] : labels) {
    text_ += before;
    text_ += name;
    text_ += "=\"" + Escaped(label) + "\"";
    before = ',';
  }
  text_ += labels.empty() ? " " : "} ";
  text_ += NumberText(value) + "\n";
}

void Exposition::Add(const Labels& labels, double value) { Line("", labels, value); }

void Exposition::Add(const Labels& labels, const Histogram& histogram) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    count += histogram.counts()[i];
    const bool last = i == Histogram::kBounds.size();
    const std::string bound = last ? "+Inf" : NumberText(Histogram::kBounds[i]);
    Labels with = labels;
    with.emplace_back("le", bound);
    Line("_bucket", with, static_cast<double>(count));
  }
  Line("_sum", labels, histogram.sum_s());
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
