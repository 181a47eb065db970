#include "worker/devices/inventory.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::worker {
namespace {

/// The first word of a model that is neither its maker's nor its family's name; "RTX 4090" is one
/// of two words, "RTX PRO 6000" of three.
std::string TypeOfModel(std::string_view model) {
  std::string series;
  while (!model.empty()) {
    const std::size_t end = std::min(model.find_first_of(" -"), model.size());
    const std::string word(model.substr(0, end));
    model.remove_prefix(std::min(end + 1, model.size()));
    if (word.empty() || word == "NVIDIA" || word == "Tesla" || word == "GeForce" ||
        word == "Quadro")
      continue;
    if (series == "RTX" && word == "PRO") {
      series = "RTX-PRO-";
      continue;
    }
    if (!series.empty() || (word != "RTX" && word != "GTX" && word != "TITAN"))
      return series + word;
    series = word;
  }
  return series;
}

}  // namespace

std::string GpuTypeOf(const std::vector<wire::Device>& devices) {
  std::string type;
  for (const wire::Device& device : devices) {
    const std::string each = TypeOfModel(device.model);
    if (each.empty() || (!type.empty() && each != type)) return "";
    type = each;
  }
  return type;
}

Inventory Narrow(const Inventory& all, const std::string& visible) {
  Inventory narrowed;
  for (std::size_t begin = 0; begin <= visible.size();) {
    const std::size_t end = std::min(visible.find(',', begin), visible.size());
    const std::string entry = visible.substr(begin, end - begin);
    begin = end + 1;
    if (entry.empty()) continue;
    // CUDA stops at the first entry that names nothing; a MIG slice is taken on trust.
    wire::Device device;
    bool found = entry.rfind("MIG-", 0) == 0;
    for (const wire::Device& each : all.devices) {
      const bool same = entry == std::to_string(each.index) ||
                        (entry.rfind("GPU-", 0) == 0 && each.uuid.rfind(entry, 0) == 0);
      if (!same) continue;
      device = each;
      found = true;
    }
    if (!found) break;
    const auto id = static_cast<std::uint32_t>(narrowed.gpu_ids.size());
    for (const GpuLinks& each : all.links) {
      if (!device.uuid.empty() && each.index == device.index)
        narrowed.links.push_back({id, each.links, each.mbyte_s});
    }
    device.index = id;
    if (device.uuid.empty()) device.uuid = entry;
    narrowed.devices.push_back(std::move(device));
    narrowed.gpu_ids.push_back(id);
    narrowed.tokens[id] = entry;
  }
  return narrowed;
}

Inventory Offer(Inventory found, std::size_t machine_count, std::uint32_t count) {
  const auto beyond = [count](std::uint32_t id) { return id >= count; };
  std::erase_if(found.gpu_ids, beyond);
  std::erase_if(found.devices, [&](const wire::Device& device) { return beyond(device.index); });
  std::erase_if(found.links, [&](const GpuLinks& each) { return beyond(each.index); });
  std::erase_if(found.tokens, [&](const auto& each) { return beyond(each.first); });
  found.note.clear();
  for (auto id = static_cast<std::uint32_t>(found.gpu_ids.size()); id < count; ++id) {
    found.gpu_ids.push_back(id);
    found.tokens[id] = std::to_string(machine_count++);
  }
  return found;
}

Inventory FindDevices(const std::optional<std::string>& visible,
                      std::optional<std::uint32_t> count) {
  Inventory inventory;
  if (count == 0u) return inventory;
  StatusOr<Gpus> gpus = ReadNvml();
  if (!gpus.ok()) {
    inventory.note = MessageOf(gpus.status());
    return count ? Offer(std::move(inventory), 0, *count) : inventory;
  }
  const std::size_t machine_count = gpus->devices.size();
  inventory.links = std::move(gpus->links);
  for (wire::Device& device : gpus->devices) {
    inventory.gpu_ids.push_back(device.index);
    inventory.tokens[device.index] = std::to_string(device.index);
    inventory.devices.push_back(std::move(device));
  }
  if (visible) inventory = Narrow(inventory, *visible);
  return count ? Offer(std::move(inventory), machine_count, *count) : inventory;
}

}  // namespace troupe::worker
