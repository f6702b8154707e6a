#include "gallop/model/functional/group_norm.h"

#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/group_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::array<int64_t, 2> kPixels = {2, 3};

// [N, C] as [N, groups, C / groups].
at::Tensor by_group(const at::Tensor& of_channels, int64_t groups) {
  return of_channels.unflatten(-1, {groups, of_channels.size(-1) / groups});
}

// [N, groups, C / groups] as a factor of images [N, C, H, W].
at::Tensor along(const at::Tensor& of_groups) {
  return of_groups.flatten(1).unsqueeze(-1).unsqueeze(-1);
}

class GroupNormFunction final : public torch::autograd::Function<GroupNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, int64_t groups,
                            const at::Tensor& weight, const at::Tensor& bias, double eps,
                            at::ScalarType result) {
    const at::Tensor x = given.to(at::kFloat);
    // Moments of the differences to each channel's first pixel: that reads x only once, and a mean
    // far from 0 costs no precision.
    const at::Tensor first = x.slice(2, 0, 1).slice(3, 0, 1);
    const at::Tensor off = x - first;
    const at::Tensor mean_off = off.mean(kPixels), square = (off * off).mean(kPixels);
    const at::Tensor mean = mean_off + first.flatten(1), variance = square - mean_off * mean_off;
    const at::Tensor group_mean = by_group(mean, groups).mean(-1, /*keepdim=*/true);
    const at::Tensor apart = by_group(mean, groups) - group_mean;
    const at::Tensor group_variance =
        (by_group(variance, groups) + apart * apart).mean(-1, /*keepdim=*/true).clamp_min(0);
    const at::Tensor inverse = (group_variance + eps).rsqrt();
    const at::Tensor scale = inverse * by_group(weight.to(at::kFloat), groups);
    const at::Tensor shift = by_group(bias.to(at::kFloat), groups) - group_mean * scale;
    context->save_for_backward({given, weight, group_mean, inverse});
    return (x * along(scale) + along(shift)).to(result);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order("group_norm");
    const auto saved = context->get_saved_variables();
    const at::Tensor x = saved[0].to(at::kFloat);
    const at::Tensor dy = gradients[0].contiguous(at::MemoryFormat::ChannelsLast).to(at::kFloat);
    const at::Tensor &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    const int64_t groups = mean.size(1);
    const int64_t channels = x.size(1) / groups;
    const auto each = static_cast<double>(channels * x.size(2) * x.size(3));
    const at::Tensor channel_mean = along(mean.expand({-1, -1, channels}));
    const at::Tensor sum = by_group(dy.sum(kPixels), groups);
    const at::Tensor along_x = by_group((dy * (x - channel_mean)).sum(kPixels), groups) * inverse;
    const at::Tensor scale = by_group(weight.to(at::kFloat), groups);
    const at::Tensor of_mean = (scale * sum).sum(-1, /*keepdim=*/true) * (1 / each),
                     of_inverse = (scale * along_x).sum(-1, /*keepdim=*/true) * (1 / each);
    // dx = (scale dy - of_mean - of_inverse (x - mean) inverse) inverse
    const at::Tensor of_x = of_inverse * inverse * inverse;
    const at::Tensor rest = (mean * of_x - of_mean * inverse).expand_as(scale * sum);
    const at::Tensor dx =
        dy * along(scale * inverse) - x * along(of_x.expand_as(rest)) + along(rest);
    return {dx.to(saved[0].scalar_type()),
            at::Tensor(),
            along_x.sum(0).flatten().to(weight.scalar_type()),
            sum.sum(0).flatten().to(weight.scalar_type()),
            at::Tensor(),
            at::Tensor()};
  }
};

bool is_autocast(const at::Tensor& x) {
  return at::autocast::is_autocast_enabled(x.device().type());
}

}  // namespace

bool takes_channels_last_group_norm(const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& bias) {
  return x.is_cuda() && x.dim() == 4 && x.numel() > 0 && weight.defined() && bias.defined() &&
         x.scalar_type() != at::kDouble && !x.is_contiguous() &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor channels_last_group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                                    const at::Tensor& bias, double eps) {
  const at::ScalarType result = is_autocast(x) ? at::kFloat : x.scalar_type();
  return GroupNormFunction::apply(x, groups, weight, bias, eps, result);
}

at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                      const at::Tensor& bias, double eps) {
  if (takes_channels_last_group_norm(x, weight, bias)) {
    return channels_last_group_norm(x, groups, weight, bias, eps);
  }
  return at::group_norm(x, groups, weight, bias, eps);
}

}  // namespace gallop::model::functional
