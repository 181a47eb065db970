#include "actors/core/call/call_target.h"

#include <charconv>

namespace troupe::actors {
namespace {

constexpr std::uint32_t kReturnsMax = 1u << 16;

bool ReadNumber(std::string_view text, std::uint32_t least, std::uint32_t* number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped == end && *number >= least && *number <= kReturnsMax;
}

bool TakeOption(std::string_view option, CallTarget* target) {
  const std::size_t equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = option.substr(equals + 1);
  if (key == "ahead") return ReadNumber(value, 1, &target->ahead);
  if (key == "tensors") {
    target->keeps_tensors = value == "1";
    return target->keeps_tensors;
  }
  if (key != "returns") return false;
  target->streams = value == "*";
  return target->streams || ReadNumber(value, 0, &target->returns);
}

}  // namespace

std::optional<CallTarget> ParseCallTarget(std::string_view name) {
  CallTarget target;
  std::size_t at = name.find(';');
  target.method = name.substr(0, at);
  while (at != std::string_view::npos) {
    const std::string_view rest = name.substr(at + 1);
    if (rest.starts_with("group=")) {
      target.group = rest.substr(6);
      if (target.group.empty()) return std::nullopt;
      break;
    }
    const std::size_t end = rest.find(';');
    if (!TakeOption(rest.substr(0, end), &target)) return std::nullopt;
    at = end == std::string_view::npos ? end : at + 1 + end;
  }
  if (target.method.empty()) return std::nullopt;
  return target;
}

}  // namespace troupe::actors
