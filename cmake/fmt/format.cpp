// The one compiled copy of fmt, from LibTorch's headers: header-only use adds 2 s to each file.
#include <locale>

#include <fmt/format-inl.h>

template fmt::locale_ref::locale_ref(const std::locale&);
template std::locale fmt::locale_ref::get<std::locale>() const;

namespace fmt::detail {

template char decimal_point_impl(locale_ref);
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;

}  // namespace fmt::detail
