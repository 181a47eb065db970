// NVIDIA's management library of a made-up machine, under its real SONAME: two GPUs with 18 links
// each, of which the second has 6 that are down, and a third without any.
// All are at work. Structs as nvml.h has them.
#include <cstdio>
#include <cstring>

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Field {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type, result;
  unsigned long long value;
};
static_assert(sizeof(Field) == 40);
struct Utilization {
  unsigned gpu, memory;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

constexpr int kSuccess = 0;
constexpr int kInvalid = 2;       // NVML_ERROR_INVALID_ARGUMENT
constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED
constexpr int kTimeout = 10;      // NVML_ERROR_TIMEOUT

unsigned IndexOf(void* handle) { return static_cast<unsigned>(*static_cast<int*>(handle)); }

int indexes[] = {0, 1, 2};
int events_left = 2;  // events with XID 79, of the second GPU

}  // namespace

extern "C" {
int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index > 2) return kInvalid;
  *handle = &indexes[index];
  return kSuccess;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA H100 80GB HBM3");
  return kSuccess;
}
int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%uabc", IndexOf(handle));
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80ull << 30, 79ull << 30, 1ull << 30};
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(void*, Pci* pci) {
  std::memset(pci, 0, sizeof *pci);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:01:00.0");
  return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  for (int& index : indexes) {
    char own[32];
    nvmlDeviceGetUUID(&index, own, sizeof own);
    *handle = &index;
    if (std::strcmp(own, uuid) == 0) return kSuccess;
  }
  return kInvalid;
}
int nvmlDeviceGetUtilizationRates(void* handle, Utilization* utilization) {
  *utilization = {25 * IndexOf(handle), 0};
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 350'500;
  return kSuccess;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = 12'000'500;
  return kSuccess;
}
int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  *celsius = 61;
  return sensor == 0 ? kSuccess : kInvalid;
}
int nvmlDeviceGetClockInfo(void*, unsigned clock, unsigned* megahertz) {
  *megahertz = 1980;
  return clock == 1 ? kSuccess : kInvalid;
}
int nvmlDeviceGetPcieReplayCounter(void* handle, unsigned* replays) {
  if (IndexOf(handle) == 2) return kNotSupported;
  *replays = 3;
  return kSuccess;
}
int nvmlEventSetCreate(void** events) {
  *events = &events_left;
  return kSuccess;
}
int nvmlEventSetFree(void*) { return kSuccess; }
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return kSuccess; }
int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  if (events_left == 0) return kTimeout;
  --events_left;
  *event = {&indexes[1], 8, 79, 0, 0};
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(void* handle, unsigned link, unsigned* active) {
  if (IndexOf(handle) == 2) return kNotSupported;
  if (link >= 18) return kInvalid;
  *active = IndexOf(handle) == 0 || link < 12 ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetFieldValues(void*, int count, Field* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].result = fields[i].field == 90 ? kSuccess : kNotSupported;
    fields[i].value_type = 1;
    fields[i].value = 26562;
  }
  return kSuccess;
}
}
