// How a process's fake NCCL behaves, by its environment; README.md has the table.
//
//   FAKE_NCCL_FAULTS="operation=hang@50,abort=slow:200"   what goes wrong, and at which passage
//   FAKE_NCCL_ON_VIOLATION=as-real                        rules are punished as NCCL does
//
// A fault is PLACE=ACTION[:MILLISECONDS][@PASSAGE]; without a passage it is every one. What cannot
// be read ends the process with a sentence: a test that runs without its fault would prove nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::fakes {

enum class Place { kInit, kConnect, kOperation, kRevoke, kAbort, kPeer };
enum class Action { kNone, kHang, kError, kSlow, kStuck, kUnmaps };

struct FakeFault {
  Place place;
  Action action;
  int milliseconds = 0;
  std::uint64_t passage = 0;  // 0: every one
};

struct Settings {
  std::vector<FakeFault> faults;
  bool ends_on_violation = true;

  /// The fault at a place's n-th passage, counted from 1; kNone where there is none.
  FakeFault At(Place place, std::uint64_t passage) const;
};

/// The settings of this process, read once.
const Settings& CurrentSettings();
/// Pure: false with what is wrong in `error`.
bool ReadFaults(std::string_view text, std::vector<FakeFault>& faults, std::string& error);

/// Keeps NCCL's only last error, which all communicators of a process share; read by LastError.
void SetLastError(const std::string& text);
const char* LastError();

/// A rule of NCCL was broken. Ends the process with a sentence, or sets the last error and returns
/// where the real library's punishment is asked for.
void Violation(std::string_view rule, const std::string& what);
/// Never returns: where the real library would hang or do anything at all.
[[noreturn]] void FatalViolation(std::string_view rule, const std::string& what);

}  // namespace troupe::fakes
