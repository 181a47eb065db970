// Method: journals lie here as heads of earlier builds left them (NAME.db), each with the durable
// state that it stood for (NAME.txt). A copy is checked and replayed, and must give that state.
//
// To add one, stop a head, copy its head/journal.db here under a new name, and run this program
// with TROUPE_GOLDEN_WRITE=1. A journal that is here is never rewritten; its text is, by the same
// means, where the form of DurableText has changed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "head/core/machine/apply.h"
#include "head/core/machine/durable_text.h"
#include "head/journal/sqlite_journal.h"

namespace troupe::head {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class OlderJournal : public ::testing::Test {
 protected:
  OlderJournal() : folder_(fs::temp_directory_path() / ("older-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~OlderJournal() override { fs::remove_all(folder_); }
  const fs::path folder_;
};

TEST_F(OlderJournal, IsReadAsItsHeadLeftIt) {
  std::size_t read = 0;
  for (const auto& entry : fs::directory_iterator(TROUPE_OLDER_DIR)) {
    if (entry.path().extension() != ".db") continue;
    fs::copy_file(entry.path(), folder_ / "journal.db", fs::copy_options::overwrite_existing);
    const StatusOr<std::string> checked = CheckJournal(folder_);
    ASSERT_TRUE(checked.ok()) << entry.path() << ": " << checked.status();
    auto journal = SqliteJournal::Open(SqliteOptions{folder_, false});
    ASSERT_TRUE(journal.ok()) << entry.path() << ": " << journal.status();
    State state;
    const Status status =
        (*journal)->Replay([&state](const Row& row) { Apply(state, row.event); });
    ASSERT_TRUE(status.ok()) << entry.path() << ": " << status;
    const fs::path text = fs::path(entry.path()).replace_extension(".txt");
    if (std::getenv("TROUPE_GOLDEN_WRITE") != nullptr)
      std::ofstream(text, std::ios::binary) << DurableText(state);
    EXPECT_EQ(DurableText(state), ReadText(text)) << entry.path();
    ++read;
  }
  EXPECT_GT(read, 0u) << "no journals in " << TROUPE_OLDER_DIR;
}

}  // namespace
}  // namespace troupe::head
