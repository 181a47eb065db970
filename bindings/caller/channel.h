// CallChannel: the connection of this process to one actor, as a Python object. Needs the GIL.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/caller/channel.h"
#include "bindings/support/nanobind.h"
#include "bindings/values/channel_object.h"

namespace troupe::bindings {

struct Outgoing;

/// False with an error set in a forked child, whose channel this is not.
bool CheckGeneration(CallChannelObject* self);

/// The call's target, and the form of its answer.
struct CallKind {
  PyObject* target;           // str: what travels (actors/core/call/call_target.h)
  PyObject* method;           // str: its method, for people
  std::uint32_t returns = 1;  // how many values
  bool streams = false;
  std::uint32_t ahead = 0;  // most items of a stream not taken yet; 0: the limits'
};

/// Issues a call: `args` are `positional` values, then one for each of `keywords` (a tuple or
/// nullptr). What its caller gets: a new Ref, a list of them, None, or a RefStream; nullptr with an
/// error set.
PyObject* IssueCall(CallChannelObject* self, const CallKind& kind, PyObject* const* args,
                    Py_ssize_t positional, PyObject* keywords);

/// Appends the values of a call, as they travel; checks their number and size. False: an error is
/// set.
bool AppendCallValues(actors::ByteBuffer& out, PyObject* const* args, Py_ssize_t positional,
                      PyObject* method, PyObject* keywords, Outgoing* outgoing = nullptr);
/// The slots of a call's several answers, nullptr for one answer.
std::shared_ptr<actors::ItemStream> NewItems(const CallKind& kind);
/// Returns the caller's object for a call with several values.
PyObject* RefsOf(CallChannelObject* channel, const CallKind& kind, actors::ItemStream& items);

void BindCallChannel(nanobind::module_& m);

}  // namespace troupe::bindings
