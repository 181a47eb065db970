// Method: every released frame is kept under golden/ as bytes (KIND.bin) and as the lines its
// fields read as (KIND.txt). It must decode for ever, and every line must still be there.
//
// A new kind gets its pair by running this program with TROUPE_GOLDEN_WRITE=1; an existing pair is
// never rewritten. Of each kind of event in a journal, golden/events.txt has the bytes behind its
// name, as hexadecimal digits, and its lines.
#include <absl/strings/escaping.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/wire/codec.h"
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

std::vector<std::string> LinesOf(const Event& event) {
  std::vector<std::string> out;
  Visit([&](const auto& body) { AddLines(body, "  ", out); }, event.body);
  return out;
}

template <class... Kinds>
std::vector<Event> RandomEvents() {
  Prng random(43);
  std::vector<Event> events;
  const auto add = [&](auto body) {
    Fill(body, random);
    Event event;
    event.body = std::move(body);
    events.push_back(std::move(event));
  };
  (add(Kinds()), ...);
  return events;
}

std::vector<Event> OneOfEachKind() {
  return RandomEvents<
    HeadStarted, NodeJoined, NodeDied, NodeDrained, GroupSubmitted, GroupAttempted,
    GroupUnplaced, GroupPlaced, GroupEnded, LaunchSubmitted, EpochBegun, RosterPublished,
    DriverAcquired, RankFinished, EpochFailed, CancelRequested, MarkerWritten, LaunchRetired,
    LaunchDisowned, ActorCreated, ActorPlaced, ActorLive, ActorDoomed, ActorDied,
    ActorForgotten, ValueWritten, ValueErased, TokenWritten, NodeKeyed, SnapshotBegun, NodeKept,
    GroupKept, LaunchKept, RankValueKept, ActorKept, RecentWritesKept, ActorHandles, TimePassed,
    GroupReformed, RankReplaced, QuotaWritten, UsageNoted, TombstonesKept>();
}

// The kinds that the file has; each of them is read, and has the lines that stand there.
std::vector<std::string> CheckEvents(const fs::path& path) {
  std::vector<std::string> names;
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("  ")) {
      EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end())
          << names.back() << " lost" << line;
      continue;
    }
    const std::size_t space = line.find(' ');
    names.push_back(line.substr(0, space));
    const StatusOr<Event> event = DecodeEvent(absl::HexStringToBytes(line.substr(space + 1)));
    EXPECT_TRUE(event.ok()) << names.back() << ": " << event.status();
    if (!event.ok()) break;
    EXPECT_EQ(NameOf(event->body), names.back());
    lines = LinesOf(*event);
  }
  return names;
}

TEST(Golden, EveryEventOfAJournalStillDecodes) {
  const fs::path path = fs::path(TROUPE_GOLDEN_DIR) / "events.txt";
  const std::vector<Event> events = OneOfEachKind();
  EXPECT_EQ(events.size(), std::size(EventBodyFamily::kOperations));
  const std::vector<std::string> known = CheckEvents(path);
  for (const Event& event : events) {
    const std::string name(NameOf(event.body));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    ASSERT_NE(std::getenv("TROUPE_GOLDEN_WRITE"), nullptr) << name << " is not in " << path;
    std::ofstream out(path, std::ios::app);
    out << name << " " << absl::BytesToHexString(*EncodeEvent(event)) << "\n";
    for (const std::string& line : LinesOf(event)) out << line << "\n";
  }
}

}  // namespace
}  // namespace troupe::wire
