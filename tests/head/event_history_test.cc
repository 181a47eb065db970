// Method: HeadCore with a client and nodes made of words; what ListEvents answers after each
// happening.
//   CH-1, CH-2: head/core/machine/event_history.h.
#include "head/core/machine/event_history.h"

#include <gmock/gmock.h>

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Chronicles : public HeadFixture {
 protected:
  Chronicles() : node_(Join(1, 8)), client_(Open(wire::Role::kClient, Id128(9, 9))) {}

  ActorId Make(std::uint64_t number, std::int32_t max_restarts = 0) {
    wire::CreateActor create;
    create.spec.actor = ActorId(12, number);
    create.spec.class_name = "Counter";
    create.spec.max_restarts = max_restarts;
    Say(client_, create, 60);
    StartActors(node_);
    return create.spec.actor;
  }
  void End(ActorId actor, int signal) {
    wire::ActorEnded ended;
    ended.actor = actor;
    ended.incarnation = 1;
    ended.failure.signal = signal;
    ended.failure.cause = signal != 0 ? "killed by SIGSEGV" : "exit code 0";
    Say(node_.session, ended);
  }
  std::vector<wire::ClusterEvent> Events() {
    Say(client_, wire::ListEvents(), 91);
    return Last<wire::EventList>(client_).events;
  }
  std::vector<wire::ClusterEvent> EventsOf(wire::EventSource source) {
    std::vector<wire::ClusterEvent> found;
    for (wire::ClusterEvent& event : Events()) {
      if (event.source == source) found.push_back(std::move(event));
    }
    return found;
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(Chronicles, CH2_NodesComeAndGo) {
  Say(node_.session, wire::Goodbye());
  Feed(SessionClosed{node_.session});
  const std::vector<wire::ClusterEvent> nodes = EventsOf(wire::EventSource::kNode);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].message, "node node-a joined");
  EXPECT_EQ(nodes[0].severity, wire::Severity::kInfo);
  EXPECT_THAT(nodes[1].message, HasSubstr("node node-a is gone: "));
  EXPECT_EQ(nodes[1].severity, wire::Severity::kError);
  EXPECT_EQ(nodes[1].node, node_.id);
  EXPECT_EQ(nodes[1].wall_us, WallUs());
}

TEST_F(Chronicles, CH2_AnActorThatCrashesIsNotedWithItsCauseAndWhetherItStartsAgain) {
  End(Make(1), 11);
  End(Make(2, 1), 11);
  const std::vector<wire::ClusterEvent> actors = EventsOf(wire::EventSource::kActor);
  ASSERT_EQ(actors.size(), 2u);
  EXPECT_EQ(actors[0].message, "Counter ended: killed by SIGSEGV");
  EXPECT_EQ(actors[0].severity, wire::Severity::kError);
  EXPECT_EQ(actors[0].actor, ActorId(12, 1));
  EXPECT_EQ(actors[1].message, "Counter ended and is started again: killed by SIGSEGV");
  EXPECT_EQ(actors[1].severity, wire::Severity::kWarning);
}

TEST_F(Chronicles, CH2_EndsThatWereAskedForAreNotNoted) {
  End(Make(1), 0);
  const ActorId killed = Make(2);
  wire::KillActor kill;
  kill.actor = killed;
  Say(client_, kill, 70);
  End(killed, 9);
  EXPECT_THAT(EventsOf(wire::EventSource::kActor), IsEmpty());
}

TEST_F(Chronicles, CH1_ItBeginsAnewWithTheHead) {
  Boot();
  client_ = Open(wire::Role::kClient, Id128(9, 9));
  const std::vector<wire::ClusterEvent> events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].message, HasSubstr("the head started (incarnation 2"));
}

TEST(EventHistory, CH1_TheLatestAreKeptNumberedWithoutGaps) {
  EventHistory history;
  for (std::size_t i = 0; i < EventHistory::kNotesMax + 5; ++i) history.Add({});
  ASSERT_EQ(history.notes().size(), EventHistory::kNotesMax);
  EXPECT_EQ(history.notes().front().number, 6u);
  EXPECT_EQ(history.notes().back().number, EventHistory::kNotesMax + 5);
}

TEST(EventHistory, CH1_LongTextsAreCutAtACharacter) {
  EventHistory history;
  wire::ClusterEvent note;
  // two bytes each
  for (std::size_t i = 0; i < EventHistory::kTextMax; ++i) note.message += "\xC3\xA9";
  note.message.insert(0, "x");
  history.Add(note);
  EXPECT_EQ(history.notes().front().message.size(), EventHistory::kTextMax - 1);
}

}  // namespace
}  // namespace troupe::head
