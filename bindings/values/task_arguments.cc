#include "bindings/values/task_arguments.h"

#include <algorithm>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_store.h"
#include "bindings/values/object_values.h"
#include "bindings/values/values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;

/// Arguments that another host pulls are named, with the references inside them.
const Outgoing& RemoteName() {
  static const Outgoing& away = *[] {
    auto* const made =
        new Outgoing(Outgoing::Way::kObjects, actors::BulkSession::kFromBytes, /*with_refs=*/true);
    made->names_inside = made->names_remote = true;
    return made;
  }();
  return away;
}

class Encoded : public actors::ArgumentCodec {
 public:
  bool AppendAnswer(const actors::Answer& answer, std::size_t named_from, std::string* values,
                    actors::Handles* held) const override {
    std::string_view value = FrontValue(answer.bytes());
    std::vector<store::ObjectId> named;
    ByteBuffer name;
    if ((answer.flags() & actors::kFlagObjects) != 0) {
      const std::optional<store::ObjectId> id = actors::ReadObjectId(answer.bytes());
      if (!id) return false;
      if (AppendCopy(*id, named_from, values)) return true;
      named.push_back(*id);
      // Arguments of at least so many bytes are named, as they may be sent to another host.
      const std::vector<store::ObjectId> inside = named_from != 0
                                                      ? actors::ObjectStore::Current()->Inside(*id)
                                                      : std::vector<store::ObjectId>();
      if (inside.empty()) {
        AppendObjectName(name, *id);
      } else if (!AppendObjectWithRefs(name, *id, inside, /*names_remote=*/false)) {
        return false;
      }
      value = name.view();
    } else if (!ObjectsNamed(value, 1, &named, &named)) {
      return false;
    }
    for (const store::ObjectId& id : named) {
      actors::ObjectStore::Current()->AddHandle(id);
      held->Add(id);
    }
    values->append(value);
    return !value.empty();
  }

  /// Appends a copy of an object of fewer bytes than `below`; objects with references are named.
  static bool AppendCopy(const store::ObjectId& id, std::size_t below, std::string* values) {
    actors::ObjectStore& store = *actors::ObjectStore::Current();
    if (below == 0 || !store.Inside(id).empty()) return false;
    const StatusOr<actors::ObjectView> view = store.View(id);
    if (!view.ok() || view->bytes().size() >= below) return false;
    ByteBuffer out;
    // fails for what is larger than any frame alone
    static_cast<void>(AppendLargeBytes(out, view->bytes()));
    values->append(out.view());
    return true;
  }

  std::optional<std::string> ForRemote(std::string_view values, int count,
                                       bool* named) const override {
    const auto away = [](const store::ObjectId& id) {
      return actors::ObjectStore::Current()->RemoteNameOf(id);
    };
    std::string out;
    for (int i = 0; i < count; ++i) {
      const std::string_view value = FrontValue(values);
      values.remove_prefix(value.size());
      std::vector<store::ObjectId> objects;
      std::vector<store::ObjectId> refs;
      if (value.empty() || !ObjectsNamed(value, 1, &objects, &refs)) return std::nullopt;
      *named = *named || !refs.empty();
      if (objects.empty()) {
        const std::size_t at = out.size();
        out.append(value);
        actors::RenameRefs(out.data() + at, value.size(), away);
        continue;
      }
      const std::size_t room = actors::RoomBeside(out.size() + values.size());
      if (AppendCopy(objects.front(), std::min(actors::BulkSession::kFromBytes, room), &out))
        continue;
      *named = true;
      ByteBuffer name;
      if (!AppendNamed(name, objects.front(), RemoteName())) return std::nullopt;
      out.append(name.view());
    }
    return out;
  }
};

}  // namespace

const actors::ArgumentCodec& TaskArguments() {
  static const auto* const values = new Encoded;
  return *values;
}

}  // namespace troupe::bindings
