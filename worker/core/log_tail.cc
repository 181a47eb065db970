#include "worker/core/log_tail.h"

#include <algorithm>
#include <vector>

namespace troupe::worker {
namespace {

constexpr std::size_t kLines = 20;
constexpr std::size_t kBytes = 4096;
constexpr std::size_t kLinesBefore = 8;
constexpr std::string_view kFatal = "Fatal Python error: ";
constexpr std::string_view kCurrent = "Current thread 0x";
// Beginnings of the fault handler's lines below that one.
constexpr std::string_view kOfHandler[] = {
    "  ",     "Current thread ", "Thread 0x", "Extension modules: ", "Python runtime state: ",
    "Stack ", "Binary file "};

using Lines = std::vector<std::string_view>;

bool Begins(std::string_view line, std::string_view with) {
  return line.substr(0, with.size()) == with;
}

Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// Returns the place where the fault handler began, if nothing else was printed since; else the end.
Lines::const_iterator FindFatal(const Lines& lines) {
  for (auto line = lines.end(); line != lines.begin();) {
    --line;
    if (Begins(*line, kFatal)) return line;
    const bool of_handler =
        *line == "\n" || std::any_of(std::begin(kOfHandler), std::end(kOfHandler),
                                     [&](std::string_view with) { return Begins(*line, with); });
    if (!of_handler) break;
  }
  return lines.end();
}

// The last `lines_max` lines before `end`, as many as fit into `bytes`; of one that is longer
// alone, its end.
std::string Last(Lines::const_iterator begin, Lines::const_iterator end, std::size_t lines_max,
                 std::size_t bytes) {
  std::string text;
  for (auto line = end; line != begin && lines_max > 0; --lines_max) {
    --line;
    if (text.size() + line->size() > bytes) {
      if (text.empty()) text = line->substr(line->size() - bytes);
      break;
    }
    text.insert(0, *line);
  }
  return text;
}

// The first lines, as many as fit.
void AddFirst(Lines::const_iterator begin, Lines::const_iterator end, std::size_t lines_max,
              std::string* text) {
  for (auto line = begin; line != end && lines_max > 0 && text->size() + line->size() <= kBytes;
       ++line, --lines_max)
    *text += *line;
}

}  // namespace

std::string LastLines(std::string_view text, bool whole) {
  const std::size_t newline = whole ? std::string_view::npos : text.find('\n');
  if (newline != std::string_view::npos && newline + 1 < text.size())
    text.remove_prefix(newline + 1);
  const Lines lines = Split(text);
  const auto fatal = FindFatal(lines);
  if (fatal == lines.end()) return Last(lines.begin(), lines.end(), kLines, kBytes);
  std::string kept = Last(lines.begin(), fatal, kLinesBefore, kBytes / 2);
  const auto current = std::find_if(fatal, lines.end(),
                                    [](std::string_view line) { return Begins(line, kCurrent); });
  kept.append(fatal->substr(0, kBytes / 4));
  AddFirst(current == lines.end() ? fatal + 1 : current, lines.end(), kLines - kLinesBefore - 1,
           &kept);
  return kept;
}

}  // namespace troupe::worker
