#include "gallop/train/step/seed.h"

#include <ATen/Context.h>

#include "gallop/base/philox.h"

namespace gallop::train {

void seed_step(uint64_t seed, int64_t step, c10::Device device, int64_t rank) {
  Philox random(seed, Purpose::kDropout, static_cast<uint64_t>(rank), static_cast<uint64_t>(step));
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(random.next_u64());
}

}  // namespace gallop::train
