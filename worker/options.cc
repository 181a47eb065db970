#include "worker/options.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "runtime/os/host.h"
#include "runtime/os/memory.h"

namespace troupe::worker {
namespace {

constexpr double kAmountMax = 1e14;
// as many zygotes as there are beside the node's own (`core/zygote_table.h`)
constexpr std::size_t kPreimportsMax = 4;
// As Ray does: the rest is for shared memory and for the system.
constexpr double kOfferedMemory = 0.7;

StatusOr<std::uint64_t> ToAmount(double value, const std::string& what) {
  if (!(value >= 0) || value > kAmountMax) {
    return MakeError(ErrorCode::kInvalid, what + ": not an amount (0 or more)");
  }
  return static_cast<std::uint64_t>(std::llround(value * static_cast<double>(kWhole)));
}

// Just enough of JSON for a flat object of numbers.
class FlatObject {
 public:
  explicit FlatObject(const std::string& text) : text_(text) {}

  StatusOr<Amounts> Parse() {
    Amounts amounts;
    if (!Take('{')) return Bad();
    if (Take('}')) return End(amounts);
    do {
      std::string name;
      if (!TakeString(&name) || name.empty() || !Take(':')) return Bad();
      Skip();
      const char* begin = text_.c_str() + at_;
      char* end = nullptr;
      const double value = std::strtod(begin, &end);
      if (end == begin) return Bad();
      at_ += static_cast<std::size_t>(end - begin);
      TROUPE_ASSIGN(amounts[name], ToAmount(value, "--resources, " + name));
    } while (Take(','));
    if (!Take('}')) return Bad();
    return End(amounts);
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(char wanted) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool TakeString(std::string* out) {
    if (!Take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') return false;  // no resource needs an escape
      out->push_back(text_[at_++]);
    }
    return Take('"');
  }
  StatusOr<Amounts> End(Amounts amounts) {
    Skip();
    if (at_ != text_.size()) return Bad();
    return amounts;
  }
  Status Bad() const {
    return MakeError(ErrorCode::kInvalid, "--resources '" + text_ +
                                              "': write a JSON object of numbers, e.g. "
                                              "'{\"tape\": 2, \"licence\": 0.5}'");
  }

  const std::string text_;
  std::size_t at_ = 0;
};

std::string DefaultSocketDir() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/troupe";
  return "/tmp/troupe-" + std::to_string(geteuid());
}

/// In whole GiB (MiB, of less than one), so that machines of one kind are alike.
double MemoryOffered(std::uint64_t total_bytes) {
  const auto offered =
      static_cast<std::uint64_t>(static_cast<double>(total_bytes) * kOfferedMemory);
  const std::uint64_t step = offered < (1u << 30) ? 1u << 20 : 1u << 30;
  return static_cast<double>(offered / step * step);
}

Status CheckName(const std::string& name) {
  if (name.empty() || name.size() > 255 ||
      name.find_first_of(" /\t\n\r\"'\\") != std::string::npos) {
    return MakeError(
        ErrorCode::kInvalid,
        "--name '" + name + "': 1 to 255 characters without blanks, quotes or slashes");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Amounts> ParseResources(const std::string& json) {
  if (json.empty()) return Amounts();
  return FlatObject(json).Parse();
}

StatusOr<std::vector<wire::Label>> ParseLabels(const std::string& text) {
  std::vector<wire::Label> labels;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return MakeError(ErrorCode::kInvalid, "--labels '" + text + "': write key=value,key=value");
    }
    wire::Label label;
    label.key = pair.substr(0, equals);
    label.value = pair.substr(equals + 1);
    labels.push_back(std::move(label));
    begin = end + 1;
  }
  return labels;
}

StatusOr<std::vector<std::vector<std::string>>> ParsePreimports(const std::string& text) {
  std::vector<std::vector<std::string>> lists;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find_first_of(",;", begin);
    const std::string name = text.substr(begin, end - begin);
    if (begin == 0 || text[begin - 1] == ';') lists.emplace_back();
    lists.back().push_back(name);
    begin = end == std::string::npos ? text.size() : end + 1;
    if (name.empty() || (begin == text.size() && end != std::string::npos)) {
      return MakeError(ErrorCode::kInvalid,
                       "--preimport '" + text + "': write module,module;module");
    }
  }
  if (lists.size() > kPreimportsMax) {
    return MakeError(ErrorCode::kInvalid, "--preimport: " + std::to_string(lists.size()) +
                                              " lists of modules; a node has at most " +
                                              std::to_string(kPreimportsMax) +
                                              " such processes at a time");
  }
  return lists;
}

StatusOr<WorkerOptions> CheckOptions(const RawOptions& raw) {
  WorkerOptions options;
  if (raw.head.empty()) {
    return MakeError(ErrorCode::kInvalid, "--head is missing: the head's host:port, or unix:/path");
  }
  TROUPE_ASSIGN(options.head, net::ParseAddress(raw.head));
  if (raw.node_dir.empty()) {
    return MakeError(ErrorCode::kInvalid, "--node-dir is missing: where this node keeps its files");
  }
  options.head_text = raw.head;
  options.token_file = raw.token_file;
  options.node_dir = raw.node_dir;
  options.socket_dir = raw.socket_dir.empty() ? DefaultSocketDir() : raw.socket_dir;
  options.name = raw.name.empty() ? os::HostName() : raw.name;
  TROUPE_TRY(CheckName(options.name));
  TROUPE_ASSIGN(options.resources, ParseResources(raw.resources));
  const double cpus = raw.num_cpus < 0 ? os::UsableCpus() : raw.num_cpus;
  TROUPE_ASSIGN(options.resources[kCpu], ToAmount(cpus, "--num-cpus"));
  if (raw.num_gpus >= 0) options.gpus = static_cast<std::uint32_t>(raw.num_gpus);
  if (options.resources.count(kGpu) > 0) {
    return MakeError(ErrorCode::kInvalid, "--resources: give GPUs by --num-gpus");
  }
  if (options.resources.count(kMemory) > 0) {
    return MakeError(ErrorCode::kInvalid, "--resources: give memory by --memory");
  }
  const double memory = raw.memory < 0 ? MemoryOffered(os::ReadMemory().total_bytes) : raw.memory;
  TROUPE_ASSIGN(options.resources[kMemory], ToAmount(memory, "--memory"));
  std::erase_if(options.resources, [](const auto& each) { return each.second == 0; });
  TROUPE_ASSIGN(options.labels, ParseLabels(raw.labels));
  if (raw.listen.find(':') != std::string::npos) {
    TROUPE_ASSIGN(options.listen, net::ParseAddress(raw.listen));
    if (options.listen.is_unix()) {
      return MakeError(ErrorCode::kInvalid, "--listen " + raw.listen + ": a TCP address is needed");
    }
  } else {
    options.listen.host = raw.listen;
  }
  options.python = raw.python.empty() ? "python3" : raw.python;
  TROUPE_ASSIGN(options.preimports, ParsePreimports(raw.preimport));
  options.lifeline_fd = raw.lifeline_fd;
  options.force_tcp = raw.force_tcp;
  options.log_bytes_max = raw.log_bytes_max;
  if (!(raw.log_days >= 0 && raw.log_days <= 36500)) {
    return MakeError(ErrorCode::kInvalid,
                     "--log-days: from 0 to 36500 days, not " + std::to_string(raw.log_days));
  }
  options.ended_logs.age_us = static_cast<std::uint64_t>(raw.log_days * 24 * 3600 * 1e6);
  options.ended_logs.bytes = raw.ended_log_bytes_max;
  options.blob_bytes_max = raw.blob_bytes_max;
  return options;
}

}  // namespace troupe::worker
