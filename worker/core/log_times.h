// When the bytes of logs were written: for each file, marks of a time and of where the file ended
// then.
//
// Pure; view: one node. Whoever looks at a file notes its end, about once a second; marks that are
// too many are thinned where they are old.
//
//   LT-1  EndAt() leaves out nothing that was written later than asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::worker {

class LogTimes {
 public:
  static constexpr std::size_t kMarksMax = 256;   // for each file
  static constexpr std::size_t kFilesMax = 4096;  // the one that came first is forgotten

  /// At `now_us` so many bytes had been written to the file.
  void Note(const std::string& file, std::uint64_t now_us, std::uint64_t end);
  /// How many bytes had been written by `at_us`, or fewer; nullopt: that is not known.
  std::optional<std::uint64_t> EndAt(const std::string& file, std::uint64_t at_us) const;

 private:
  struct Mark {
    std::uint64_t at_us = 0;
    std::uint64_t end = 0;
  };
  static void Thin(std::vector<Mark>* marks);

  std::map<std::string, std::vector<Mark>> marks_;
  std::deque<std::string> order_;
};

}  // namespace troupe::worker
