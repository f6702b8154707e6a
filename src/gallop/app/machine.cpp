#include "gallop/app/machine.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include "gallop/app/device.h"
#include "gallop/base/file.h"
#include "gallop/base/hardware.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

std::string describe_gpu() {
  const DeviceChoice choice = choose_device("auto");
  if (choice.device.is_cuda()) return "NVIDIA, usable";
  return choice.note.empty() ? "none" : choice.note;
}

}  // namespace

MachineReport describe_machine() {
  const Hardware hardware = read_hardware();
  return {
      {"gallop", GALLOP_VERSION},
      {"libtorch", TORCH_VERSION},
      {"host", hardware.host},
      {"processor", hardware.cpu_model},
      {"cores", std::to_string(hardware.cores)},
      {"compute threads", std::to_string(hardware.threads)},
      {"instruction sets", hardware.instruction_sets},
      {"library kernels", at::get_cpu_capability()},
      {"memory", format_bytes(hardware.memory_bytes)},
      {"gpu", describe_gpu()},
      {"cache folder", user_cache_folder().string()},
  };
}

}  // namespace gallop::app
