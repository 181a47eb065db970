#include "bindings/train/bind_groups.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "bindings/control/control_convert.h"
#include "bindings/support/gil.h"
#include "bindings/train/groups.h"
#include "runtime/os/host.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

/// The address and port by which a group's other ranks find this one.
class GroupDoor {
 public:
  explicit GroupDoor(const std::string& host) {
    auto door = train::Door::Open(host);
    if (!door.ok()) ThrowStatus(door.status());
    door_.emplace(*std::move(door));
  }
  void Listen(const std::string& interface, const std::string& towards) {
    if (!door_) throw nb::value_error(kUsed);
    const std::string address =
        interface.empty() ? os::InterfaceTo({towards}).address : os::AddressOf(interface);
    const Status status =
        address.empty() ? MakeError(ErrorCode::kInvalid,
                                    "the interface " + interface + " has no address on " +
                                        os::HostName() + ", where ranks of other nodes are to come")
                        : door_->Listen(address);
    if (!status.ok()) ThrowStatus(status);
  }
  nb::bytes card() const {
    if (!door_) throw nb::value_error(kUsed);
    const std::string text = door_->card().Text();
    return nb::bytes(text.data(), text.size());
  }
  train::Door Take() {
    if (!door_) throw nb::value_error(kUsed);
    train::Door door = std::move(*door_);
    door_.reset();
    return door;
  }

 private:
  static constexpr const char* kUsed = "a door is one group's, and this one has been used";
  std::optional<train::Door> door_;
};

// Nothing of a group over memory can be stuck but on a machine that runs nothing of the process.
constexpr Duration kStuckAfter = std::chrono::minutes(1);

Duration OfSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::vector<train::Card> CardsOf(const std::vector<nb::bytes>& texts) {
  std::vector<train::Card> cards;
  for (const auto& text : texts) {
    auto card = train::Card::Parse({text.c_str(), text.size()});
    if (!card.ok()) ThrowStatus(card.status());
    cards.push_back(*std::move(card));
  }
  return cards;
}

/// The address of the group's handle, which the library built against torch takes.
std::uintptr_t Form(GroupDoor& door, const std::string& name, int rank, nb::bytes secret,
                    const std::vector<nb::bytes>& cards, double form_s, double verdict_s) {
  train::LocalSpec spec;
  spec.name = name;
  spec.rank = rank;
  spec.size = static_cast<int>(cards.size());
  spec.secret = Secret(std::string(secret.c_str(), secret.size()));
  spec.cards = CardsOf(cards);
  spec.times.form_max = OfSeconds(form_s);
  spec.times.call_max = kStuckAfter;
  spec.verdict_within = OfSeconds(verdict_s);
  auto group = train::FormInProcess(std::move(spec), door.Take());
  Status status;
  {
    const GilReleased released;
    status = group->AwaitReady();
  }
  if (!status.ok()) {
    train::LeaveInProcess(std::move(group));
    ThrowStatus(status);
  }
  return reinterpret_cast<std::uintptr_t>(NewGroupHandle(std::move(group)));
}

}  // namespace

void bind_groups(nb::module_& m) {
  nb::class_<GroupDoor>(m, "GroupDoor", "Where the other ranks of a group find this one, once.")
      .def(nb::init<const std::string&>(), "host"_a = "",
           "`host`: what names the node; ranks with the same one share memory.")
      .def("listen", &GroupDoor::Listen, "interface"_a, "towards"_a,
           "Listens to other nodes too, at the first address of an interface, or where that is "
           "empty at the one from which packets to the address `towards` leave. The card has it "
           "then. Raises where there is none.")
      .def_prop_ro("card", &GroupDoor::card, "What the other ranks are told.");
  m.def("form_group", &Form, "door"_a, "name"_a, "rank"_a, "secret"_a, "cards"_a, "form_s"_a,
        "verdict_s"_a,
        "Forms a group over the memory of its nodes, and TCP between them, with the ranks of these "
        "cards; blocks without the GIL. The address of its handle, for the functions of "
        "group_api(), which let go of it. Raises where it does not form in `form_s`.");
  m.def("stop_groups", &train::StopAllInProcess, "reason"_a,
        "Ends what runs in all such groups of this process, with the reason: any thread, at once. "
        "How many there are.");
  m.def(
      "group_api", [] { return reinterpret_cast<std::uintptr_t>(GroupApi()); },
      "The address of the functions of group_api.h.");
}

}  // namespace troupe::bindings
