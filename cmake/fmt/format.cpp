// The one compiled copy of fmt, from the headers that LibTorch brings: header-only use would add 2 s to each file.
#include <locale>

#include <fmt/format-inl.h>

template fmt::locale_ref::locale_ref(const std::locale&);
template std::locale fmt::locale_ref::get<std::locale>() const;
template char fmt::detail::decimal_point_impl(fmt::locale_ref);
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::locale_ref);
template fmt::detail::dragonbox::decimal_fp<float> fmt::detail::dragonbox::to_decimal(float) noexcept;
template fmt::detail::dragonbox::decimal_fp<double> fmt::detail::dragonbox::to_decimal(double) noexcept;
