# Settles LACUNA_CUDA (AUTO = ON where nvcc and a LibTorch with CUDA are) and how kernels are compiled.
#
# Kernels know nothing of LibTorch, so nvcc alone compiles them: `cmake --build ... --target lacuna_cuda_kernels` does so on machines whose
# LibTorch is for the CPU only.

find_program(LACUNA_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(nvcc_is_fit FALSE)
if(LACUNA_NVCC)
  execute_process(COMMAND ${LACUNA_NVCC} --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
  string(REGEX MATCH "release [0-9.]+" nvcc_release "${nvcc_says}")
  if(nvcc_release MATCHES "([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.4)
    set(nvcc_is_fit TRUE)
  endif()
endif()
# All code comes from compute_80's, so that nvcc reads a kernel once: none uses what sm_90a alone has.
set(LACUNA_NVCC_FLAGS -std=c++20 -O3 -DNDEBUG --expt-relaxed-constexpr --Werror all-warnings -Xcompiler=-fPIC -I${PROJECT_SOURCE_DIR}/src
    -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80 -gencode=arch=compute_80,code=sm_90a)

# cuda_obstacle(RESULT): what LACUNA_CUDA needs and has not, empty if it has all. The slim set of LibTorch holds libtorch_cuda.so too, without
# the libraries that this one needs, and programs are linked all the same (--allow-shlib-undefined): only ldd tells.
function(cuda_obstacle result)
  set(library ${LIBTORCH_DIR}/lib/libtorch_cuda.so)
  set(obstacle "")
  if(NOT LACUNA_NVCC)
    set(obstacle "nvcc of the CUDA toolkit, 12.4 or later; it is neither in PATH nor in /usr/local/cuda/bin. Pass -DLACUNA_NVCC=FILE.")
  elseif(NOT nvcc_is_fit)
    set(obstacle "nvcc of the CUDA toolkit, 12.4 or later; ${LACUNA_NVCC} is of another (${nvcc_release}). Pass -DLACUNA_NVCC=FILE.")
  elseif(NOT EXISTS ${library})
    set(obstacle "a LibTorch with CUDA; ${LIBTORCH_DIR} has no libtorch_cuda.so. Run scripts/setup.sh --cuda.")
  else()
    execute_process(COMMAND ldd ${library} OUTPUT_VARIABLE libraries ERROR_QUIET)
    string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${libraries}")
    list(TRANSFORM missing REPLACE " => not found" "")
    list(REMOVE_ITEM missing libcuda.so.1) # the driver's: building does without
    list(JOIN missing ", " missing)
    if(missing)
      set(obstacle "a LibTorch with CUDA; that in ${LIBTORCH_DIR} lacks ${missing}. Run scripts/setup.sh --cuda.")
    endif()
  endif()
  set(${result} "${obstacle}" PARENT_SCOPE)
endfunction()

if(LACUNA_CUDA)
  cuda_obstacle(obstacle)
  if(NOT obstacle)
    set(LACUNA_CUDA ON)
    find_package(CUDAToolkit REQUIRED)
    find_path(LACUNA_NCCL_INCLUDE nccl.h HINTS ${LIBTORCH_DIR}/../nvidia/nccl/include REQUIRED) # beside LibTorch, whose library holds or needs NCCL
  elseif(LACUNA_CUDA STREQUAL "AUTO")
    set(LACUNA_CUDA OFF)
  else()
    message(FATAL_ERROR "LACUNA_CUDA needs ${obstacle}")
  endif()
endif()
message(STATUS "CUDA: ${LACUNA_CUDA}")

if(nvcc_is_fit)
  add_custom_target(lacuna_cuda_kernels)
else()
  add_custom_target(lacuna_cuda_kernels COMMAND ${CMAKE_COMMAND} -E echo "No nvcc of 12.4 or later here: the CUDA kernels were not compiled.")
endif()

# nvcc_object(FILE OBJECT): OBJECT is made from FILE; OBJECT.ptxas says what its kernels need of a GPU (scripts/kernel_registers.py).
function(nvcc_object file object)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${object}
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/run_nvcc.sh ${object}.ptxas ${LACUNA_NVCC} ${LACUNA_NVCC_FLAGS} -Xptxas -v -MD -MF ${object}.d -MT ${object} -c ${file} -o ${object}
    DEPENDS ${file}
    DEPFILE ${object}.d
    COMMENT "nvcc ${object}"
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES GENERATED TRUE EXTERNAL_OBJECT TRUE)
endfunction()

# gpu_sources(NAME OBJECTS FILES...): FILES are compiled by nvcc, for the program in a build with CUDA (then their objects are added to the list
# OBJECTS), else to see that they compile.
function(gpu_sources name result)
  if(NOT nvcc_is_fit)
    return()
  endif()
  set(objects)
  foreach(file IN LISTS ARGN)
    get_filename_component(stem ${file} NAME_WE)
    get_filename_component(file ${file} ABSOLUTE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}_on_gpu/${stem}.o)
    nvcc_object(${file} ${object})
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(lacuna_${name}_on_gpu DEPENDS ${objects})
  add_dependencies(lacuna_cuda_kernels lacuna_${name}_on_gpu)
  if(LACUNA_CUDA)
    set(${result} ${${result}} ${objects} PARENT_SCOPE)
  endif()
endfunction()
