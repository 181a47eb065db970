// Method: every released frame is kept under golden/ as bytes (KIND.bin) and as the lines its
// fields read as (KIND.txt). It must decode for ever, and every line must still be there.
//
// A new kind gets its pair by running this program with TROUPE_GOLDEN_WRITE=1; an existing pair is
// never rewritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/wire/frame.h"
#include "runtime/wire/inspect.h"

namespace troupe::wire {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteMissing(std::size_t kind) {
  const fs::path base = fs::path(TROUPE_GOLDEN_DIR) / std::string(kBodyNames[kind]);
  if (fs::exists(base.string() + ".bin")) return;
  fs::create_directories(TROUPE_GOLDEN_DIR);
  Prng random(kind + 1);
  Message message;
  message.id = kind + 1;
  message.body = RandomBody(kind, random);
  message.attachment = "attachment";
  std::ofstream(base.string() + ".bin", std::ios::binary) << *EncodeFrame(message);
  std::ofstream text(base.string() + ".txt");
  for (const std::string& line : Lines(message)) text << line << "\n";
}

TEST(Golden, EveryReleasedFrameStillDecodes) {
  if (std::getenv("TROUPE_GOLDEN_WRITE") != nullptr) {
    for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) WriteMissing(kind);
  }
  for (std::size_t kind = 0; kind < std::size(kBodyNames); ++kind) {
    const std::string name(kBodyNames[kind]);
    const fs::path base = fs::path(TROUPE_GOLDEN_DIR) / name;
    ASSERT_TRUE(fs::exists(base.string() + ".bin")) << name << " has no golden frame";
    const StatusOr<Message> message = DecodeFrame(ReadFile(base.string() + ".bin"));
    ASSERT_TRUE(message.ok()) << name << ": " << message.status();
    EXPECT_EQ(NameOf(message->body), name);
    EXPECT_EQ(message->attachment, "attachment");
    const std::vector<std::string> lines = Lines(*message);
    std::ifstream text(base.string() + ".txt");
    for (std::string line; std::getline(text, line);) {
      EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end())
          << name << " lost " << line;
    }
  }
}

}  // namespace
}  // namespace troupe::wire
