# cmake --install: the program, the module libraries, their headers, and a CMake package "gallop".
include(CMakePackageConfigHelpers)

# gallop::gallop, for programs that use the library: every module, and LibTorch.
get_property(GALLOP_MODULES GLOBAL PROPERTY GALLOP_MODULES)
add_library(gallop_library INTERFACE)
add_library(gallop::gallop ALIAS gallop_library)
target_link_libraries(gallop_library INTERFACE ${GALLOP_MODULES} gallop_torch)
set_target_properties(gallop_library PROPERTIES EXPORT_NAME gallop)
foreach(module IN LISTS GALLOP_MODULES)
  string(REGEX REPLACE "^gallop_" "" name ${module})
  set_target_properties(${module} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(gallop_fmt PROPERTIES EXPORT_NAME fmt)

# gallop::plugin, for plug-ins: headers and compiler options. The modules are those of the program that loads the
# plug-in.
add_library(gallop_plugin INTERFACE)
target_include_directories(gallop_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(gallop_plugin INTERFACE cxx_std_20)
target_link_libraries(gallop_plugin INTERFACE gallop_torch)
set_target_properties(gallop_plugin PROPERTIES EXPORT_NAME plugin)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gallop)
install(TARGETS gallop_library gallop_plugin gallop_fmt ${GALLOP_MODULES} EXPORT gallop
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gallop NAMESPACE gallop:: FILE gallop-targets.cmake DESTINATION ${package_dir})
include(PublicHeaders)
foreach(header IN LISTS GALLOP_INSTALLED_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/include/gallop/app/plugin_abi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gallop/app)

# The front finds the full program at this path; the full program finds LibTorch at the path used by the build.
if(TARGET gallop)
  install(TARGETS gallop RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_target_properties(gallop_full PROPERTIES INSTALL_RPATH ${GALLOP_TORCH_DIR}/lib)
  install(TARGETS gallop_full RUNTIME DESTINATION libexec/gallop)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

list(TRANSFORM GALLOP_MODULES REPLACE "^gallop_" "gallop::" OUTPUT_VARIABLE GALLOP_LIBRARIES)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/gallop-config.cmake.in ${PROJECT_BINARY_DIR}/gallop-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gallop-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gallop-config.cmake
              ${PROJECT_BINARY_DIR}/gallop-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/ImportTorch.cmake ${PROJECT_SOURCE_DIR}/cmake/Plugins.cmake
        DESTINATION ${package_dir})
