// The links of several stores of one host, over real sockets in one process; each store is a table,
// a poll and an ObjectLinks, turned by hand until what is awaited has come. No thread, no mutex.
#include "actors/objects/object_links.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/net/now.h"
#include "runtime/async/os_random.h"
#include "runtime/store/pool.h"

namespace troupe::actors {
namespace {

/// A process: what its store would keep, and what it heard.
class Process : public ObjectLinks::Events {
 public:
  Process() : Process(NewId()) {}
  explicit Process(const ProcessId& self)
      : self_(self), table_(self), links_(self, Listening(self), poll_, table_, *this) {}

  const ProcessId& self() const { return self_; }
  ObjectLinks& links() { return links_; }
  store::References& table() { return table_; }

  bool OnFrame(ObjectLink& link, const ObjectFrame& frame) override {
    frames.push_back(frame);
    if (frame.word == ObjectWord::kWant) Give(link, frame);
    if (frame.word == ObjectWord::kHere) got = link.TakeDescriptor();
    return true;
  }
  bool OnControl(const ProcessId& peer, std::uint64_t connection,
                 const store::ReceivedFrame& received) override {
    ++controls;
    if (received.alone) return table_.Ack(peer, connection, received.acknowledged, Now());
    return table_.Frame(peer, connection, received.acknowledged, received.frame, Now());
  }
  void OnDown(const ProcessId& peer) override { down.push_back(peer); }
  void OnNothingFrom(const ProcessId& peer, const std::string& why) override {
    nothing.emplace_back(peer, why);
  }
  std::vector<SegmentKey> WantedFrom(const ProcessId&) override { return wanted; }

  /// Runs one turn of the store's thread; waits for at most a moment.
  void Turn() {
    epoll_event events[16];
    const int count = poll_.Wait(events, 16, 1);
    for (int i = 0; i < count; ++i) links_.OnEvent(events[i]);
    links_.DialDue(Now());
    Settle();
  }
  void Settle() {
    while (true) {
      const store::Effects effects = table_.TakeEffects();
      for (const store::Effect& effect : effects) Apply(effect);
      links_.Flush();
      const bool closed = links_.CloseEnded();
      if (effects.empty() && !closed) return;
    }
  }

  std::vector<ObjectFrame> frames;
  std::vector<ProcessId> down;
  std::vector<std::pair<ProcessId, std::string>> nothing;
  std::vector<SegmentKey> wanted;
  GuardedFd got;
  int controls = 0;

 private:
  static ProcessId NewId() {
    async::OsRandom random;
    return ProcessId::Random(random);
  }
  static GuardedFd Listening(const ProcessId& self) {
    StatusOr<GuardedFd> listener = ObjectLink::Listen(self);
    EXPECT_TRUE(listener.ok());
    return *std::move(listener);
  }
  void Apply(const store::Effect& effect) {
    if (const auto* send = std::get_if<store::SendFrame>(&effect)) links_.SendFrame(*send);
    if (const auto* ack = std::get_if<store::SendAck>(&effect)) links_.SendAck(ack->peer);
    if (const auto* connect = std::get_if<store::Connect>(&effect)) links_.Ensure(connect->peer);
    if (const auto* watch = std::get_if<store::Watch>(&effect)) links_.Ensure(watch->process);
    if (const auto* refuse = std::get_if<store::Refuse>(&effect)) links_.Refuse(refuse->peer);
  }
  /// Gives segment 1, which a pool of this process made, and has no other.
  void Give(ObjectLink& link, const ObjectFrame& want) {
    GuardedFd copy;
    std::uint64_t bytes = 0;
    if (want.x == 1) {
      StatusOr<store::Writing> writing = pool_.Begin(100 << 10);
      const store::Location at = pool_.Lend(*writing, self_);
      copy = GuardedFd(pool_.DescriptorOf(at.slot.segment, &bytes)->Release());
    }
    links_.Give(link, {want.a, static_cast<std::uint32_t>(want.x)}, std::move(copy), bytes);
  }

  const ProcessId self_;
  ObjectPoll poll_;
  store::Pool pool_{self_, NodeId()};
  store::References table_;
  ObjectLinks links_;
};

/// Until `done`; false: not within a time that only a failure takes.
bool Until(const std::vector<Process*>& processes, const std::function<bool()>& done) {
  const Instant end = Now() + std::chrono::seconds(60);
  while (!done()) {
    if (Now() > end) return false;
    for (Process* process : processes) process->Turn();
  }
  return true;
}

ObjectFrame LentOn(const ProcessId& owner, std::uint64_t number) {
  return {ObjectWord::kLentOn, owner, {}, number, 1};
}

/// Says something, until it has been heard: where no link is up, nothing is sent.
bool Reaches(Process& from, Process& to, std::uint64_t number) {
  return Until({&from, &to}, [&] {
    from.links().Say(to.self(), LentOn(to.self(), number));
    return !to.frames.empty() && to.frames.back().x == number;
  });
}

TEST(ObjectLinks, OneThatIsDialledServesBothWays) {
  Process a;
  Process b;
  a.links().Ensure(b.self());
  EXPECT_TRUE(Reaches(a, b, 1));
  EXPECT_TRUE(Reaches(b, a, 2));
  EXPECT_EQ(a.links().size(), 1u);
  EXPECT_EQ(b.links().size(), 1u);
}

TEST(ObjectLinks, WhereBothDialOneIsLeft) {
  for (int round = 0; round < 20; ++round) {
    Process a;
    Process b;
    a.links().Ensure(b.self());
    b.links().Ensure(a.self());
    EXPECT_TRUE(Reaches(a, b, 1));
    EXPECT_TRUE(Reaches(b, a, 2));
    EXPECT_EQ(a.links().size(), 1u);
    EXPECT_EQ(b.links().size(), 1u);
  }
}

TEST(ObjectLinks, ADescriptorComesOncePerRequestAndItsEndIsTold) {
  Process a;
  Process b;
  a.wanted = {{b.self(), 1}};
  a.links().Want({b.self(), 1}, b.self());  // requested before there is a link, sent once it is up
  ASSERT_TRUE(Until({&a, &b}, [&] { return !a.frames.empty(); }));
  EXPECT_EQ(a.frames.back().word, ObjectWord::kHere);
  EXPECT_GE(a.got.get(), 0);
  EXPECT_GT(a.frames.back().y, 0u);
  a.links().Want({b.self(), 2}, b.self());
  ASSERT_TRUE(Until({&a, &b}, [&] { return a.frames.size() == 2; }));
  EXPECT_EQ(a.frames.back().word, ObjectWord::kGone);
  b.links().Retire({b.self(), 2});
  b.links().Retire({b.self(), 1});
  ASSERT_TRUE(Until({&a, &b}, [&] { return a.frames.size() == 3; }));
  EXPECT_EQ(a.frames.back().word, ObjectWord::kRetire);
  EXPECT_EQ(a.frames.back().x, 1u) << "the other one was never given";
}

TEST(ObjectLinks, FramesOfTheTablesAreCarried) {
  Process owner;
  Process borrower;
  const store::ObjectId id = owner.table().PutAs(1, store::Value::Inline("value"), {}, Now());
  borrower.table().Receive(owner.self(), {id, 0}, nullptr, Now());
  borrower.table().Want(id, Now());
  ASSERT_TRUE(Until({&owner, &borrower},
                    [&] { return borrower.table().Look(id).known == store::Known::kValue; }));
  EXPECT_GT(owner.controls, 0);
  EXPECT_GT(borrower.controls, 0);
}

TEST(ObjectLinks, AProcessThatIsNotThereIsDeadAtOnce) {
  Process a;
  const ProcessId nobody(a.self().hi, a.self().lo + 2);
  a.table().Mind(nobody, Now());
  a.Settle();
  ASSERT_EQ(a.nothing.size(), 1u);
  EXPECT_EQ(a.nothing[0].first, nobody);
  EXPECT_FALSE(a.table().Mind(nobody, Now()));
  EXPECT_EQ(a.links().NextDial(), std::nullopt);
}

TEST(ObjectLinks, AfterALossItIsDialledAnew) {
  Process a;
  auto b = std::make_unique<Process>();
  const ProcessId same = b->self();
  a.table().Mind(same, Now());
  ASSERT_TRUE(Reaches(a, *b, 1));
  b.reset();
  auto again = std::make_unique<Process>(same);
  ASSERT_TRUE(Until({&a, again.get()}, [&] { return !a.down.empty(); }));
  EXPECT_EQ(a.down[0], same);
  EXPECT_TRUE(Reaches(a, *again, 2)) << "it lives";
}

TEST(ObjectLinks, WhatMakesNoSenseEndsThatLinkAndNothingElse) {
  Process a;
  Process b;
  a.links().Ensure(b.self());
  ASSERT_TRUE(Reaches(a, b, 1));
  const ObjectFrame before_greeting = LentOn(b.self(), 9);
  std::string early;
  AppendObjectFrame(early, before_greeting);
  std::string stranger;
  AppendObjectFrame(stranger, {ObjectWord::kHello, ProcessId(5, 5), ProcessId(6, 6), 0, 0});
  for (const std::string& bytes : {std::string(200, 'x'), early, stranger}) {
    GuardedFd fd;
    ASSERT_EQ(ObjectLink::Dial(b.self(), &fd), ObjectLink::Dialled::kOk);
    ASSERT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    char answer;
    ASSERT_TRUE(Until({&a, &b}, [&] { return ::recv(fd.get(), &answer, 1, MSG_DONTWAIT) == 0; }))
        << "it is closed";
  }
  for (const ObjectFrame& frame : b.frames) EXPECT_EQ(frame.x, 1u) << "before a greeting";
  EXPECT_TRUE(b.down.empty());
  EXPECT_TRUE(Reaches(a, b, 2));
}

}  // namespace
}  // namespace troupe::actors
