#include "gallop/train/tasks/prediction.h"

namespace gallop::train {

at::Tensor Prediction::shown(const at::Tensor& outputs) const {
  return postprocess == nullptr ? outputs : postprocess(outputs.to(at::kFloat));
}

}  // namespace gallop::train
