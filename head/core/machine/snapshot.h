// A snapshot: the durable state as the shortest events that make it, in place of all that led to
// it.
//
// Pure. Folding SnapshotOf(state) into an empty state gives a state with the same durable part
// (what a replay of the whole journal gives: reservations that were being released are gone, nodes
// report what they still hold). Cost: one pass over the state; the events carry payloads and values
// as attachments.
#pragma once

#include <string>
#include <vector>

#include "head/core/machine/state.h"

namespace troupe::head {

std::vector<wire::Event> SnapshotOf(const State& state);
/// The part of it that makes one launch.
std::vector<wire::Event> EventsOf(const Launch& launch);

/// Restores state from the events of a snapshot; called by apply.cc.
void Restore(State& state, const wire::SnapshotBegun& event, const std::string& attachment);
void Restore(State& state, const wire::NodeKept& event, const std::string& attachment);
void Restore(State& state, const wire::GroupKept& event, const std::string& attachment);
void Restore(State& state, const wire::LaunchKept& event, const std::string& attachment);
void Restore(State& state, const wire::TombstonesKept& event, const std::string& attachment);
void Restore(State& state, const wire::RankValueKept& event, const std::string& attachment);
void Restore(State& state, const wire::ActorKept& event, const std::string& attachment);
void Restore(State& state, const wire::RecentWritesKept& event, const std::string& attachment);
void Restore(State& state, const wire::QuotaWritten& event, const std::string& attachment);
void Restore(State& state, const wire::UsageNoted& event, const std::string& attachment);

}  // namespace troupe::head
