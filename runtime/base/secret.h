// A value that must not reach a log, an argument list or a core dump's readable text: it has no
// stream operator, no implicit conversion, and is wiped when destroyed.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace troupe {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { other.Wipe(); }
  Secret& operator=(Secret other) noexcept {
    bytes_.swap(other.bytes_);
    return *this;
  }
  ~Secret() { Wipe(); }

  /// The bytes, for the one place that needs them. Valid while this Secret lives.
  std::string_view Reveal() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  void Wipe() {
    volatile char* p = bytes_.data();
    for (std::size_t i = 0; i < bytes_.size(); ++i) p[i] = 0;
    bytes_.clear();
  }
  std::string bytes_;
};

}  // namespace troupe
