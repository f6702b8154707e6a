#include "gallop/model/functional/autocast.h"

#include <ATen/autocast_mode.h>

namespace gallop::model::functional {

at::ScalarType product_format(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x.scalar_type();
  return at::autocast::get_autocast_dtype(device);
}

bool is_bf16_autocast() {
  return at::autocast::is_autocast_enabled(at::kCPU) &&
         at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16;
}

}  // namespace gallop::model::functional
